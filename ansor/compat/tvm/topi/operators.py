"""Operators of TVM that have another name or other arguments here: tables from TVM's name to our operator and TVM's arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import cache

from ansor.compat.tvm import missing
from ansor.compat.tvm.topi.renamed import Operator, Renamed
from ansor.te import nn, scalar
from ansor.te.expr import Expr, Number, as_expr, binary
from ansor.te.nn.comparison import truth
from ansor.te.nn.elementwise import combine
from ansor.te.tensor import Tensor

_1D = "data kernel strides=1 padding='VALID' dilation=1"
_2D = "Input Filter stride padding dilation"
_LAYOUT = "auto_scheduler_rewritten_layout:=''"
_POOL = "stride dilation padding pool_type ceil_mode=False"

RENAMED: Mapping[str, Renamed] = {
    "fast_exp": Renamed("exp", "x"), "fast_tanh": Renamed("tanh", "x"), "fast_erf": Renamed("erf", "x"), "fast_softmax": Renamed("softmax", "x axis=-1"),
    "concatenate": Renamed("concatenate", "a_tuple axis=0"),
    "stack": Renamed("stack", "a axis=0"),
    "split": Renamed("split", "ary indices_or_sections axis=0"),
    "meshgrid": Renamed("meshgrid", "a_tuple indexing='ij'"),
    "layout_transform": Renamed("layout_transform", "array src_layout dst_layout"),
    "shape": Renamed("shape_of", "array dtype='int32'"),
    "ndarray_size": Renamed("size_of", "array dtype='int32'"),
    "adv_index": Renamed("advanced_index", "data indices"),
    "elemwise_sum": Renamed("elementwise_sum", "xs"),
    "broadcast_to": Renamed("broadcast_to", "data shape"),
    "logical_not": Renamed("logical_not", "data"),
    "bitwise_not": Renamed("bitwise_not", "data"),
    "matmul": Renamed("matmul", "a b transp_a=False transp_b=False"),
    "flatten": Renamed("flatten", "data"),
    "dense": Renamed("dense", f"data weight bias=None out_dtype=None {_LAYOUT} meta_schedule_original_shape:=None"),
    "pad": Renamed("pad", "data pad_before pad_after=None pad_value=0.0 name='PadInput' attrs:=None"),
    "dilate": Renamed("dilate", "data strides dilation_value=0.0 name='DilatedInput'"),
    "scale_shift_nchw": Renamed("scale_shift", "Input Scale Shift", {"axis": 1}),
    "scale_shift_nhwc": Renamed("scale_shift", "Input Scale Shift", {"axis": -1}),
    "conv1d": Renamed("conv1d", f"{_1D} layout:data_layout='NCW' out_dtype=None"),
    "conv1d_ncw": Renamed("conv1d", f"{_1D} out_dtype=None", {"data_layout": "NCW"}),
    "conv1d_nwc": Renamed("conv1d", f"{_1D} out_dtype=None", {"data_layout": "NWC"}),
    "group_conv1d_ncw": Renamed("conv1d", f"{_1D} groups=1 out_dtype=None", {"data_layout": "NCW"}),
    "group_conv1d_nwc": Renamed("conv1d", f"{_1D} groups=1 out_dtype=None", {"data_layout": "NWC"}),
    "conv2d_nchw": Renamed("conv2d", f"{_2D} out_dtype=None", {"data_layout": "NCHW"}),
    "conv2d_nhwc": Renamed("conv2d", f"{_2D} out_dtype='float32' {_LAYOUT} meta_schedule_original_shape:=None", {"data_layout": "NHWC"}),
    "conv2d_hwcn": Renamed("conv2d", f"{_2D} out_dtype=None", {"data_layout": "HWCN", "kernel_layout": "HWIO"}),
    "group_conv2d_nchw": Renamed("conv2d", f"{_2D} groups out_dtype=None", {"data_layout": "NCHW"}),
    "group_conv2d_nhwc": Renamed("conv2d", f"{_2D} groups out_dtype=None", {"data_layout": "NHWC"}),
    "depthwise_conv2d_nchw": Renamed("depthwise_conv2d_nchw", f"{_2D} out_dtype=None"),
    "depthwise_conv2d_nhwc": Renamed("depthwise_conv2d_nhwc", f"{_2D} out_dtype=None"),
    "conv3d_ncdhw": Renamed("conv3d", f"{_2D} groups=1 out_dtype=None", {"data_layout": "NCDHW"}),
    "conv3d_ndhwc": Renamed("conv3d", f"{_2D} groups=1 out_dtype='float32' {_LAYOUT} meta_schedule_origin_shape:=None", {"data_layout": "NDHWC"}),
    "conv1d_transpose_ncw": Renamed("conv1d_transpose", "data kernel stride padding out_dtype=None output_padding=0"),
    "conv2d_transpose_nchw": Renamed("conv2d_transpose", "Input Filter strides padding out_dtype=None output_padding=0"),
    "group_conv2d_transpose_nchw": Renamed("conv2d_transpose", "data kernel stride padding out_dtype output_padding groups"),
    "conv3d_transpose_ncdhw": Renamed("conv3d_transpose", "Input Filter strides padding out_dtype=None output_padding=0"),
    "pool1d": Renamed("pool1d", f"data kernel {_POOL} layout='NCW' count_include_pad=True"),
    "pool2d": Renamed("pool2d", f"data kernel {_POOL} layout='NCHW' count_include_pad=True"),
    "pool3d": Renamed("pool3d", f"data kernel {_POOL} layout='NCDHW' count_include_pad=True"),
    "pool_grad": Renamed("pool_grad", "grads data kernel stride padding pool_type ceil_mode=False layout='NCHW' count_include_pad=True"),
    "adaptive_pool3d": Renamed("adaptive_pool", "data output_size pool_type layout='NCDHW'"),
}  # fmt: skip
"""TVM's name -> our operator. By default, convolutions of channels-last data return float32, as in TVM; the others return the dtype of the data."""

OF_TWO: Mapping[str, tuple[Callable[[Expr, Expr], Expr], str]] = {
    "add": (operator.add, "lhs + rhs."),
    "subtract": (operator.sub, "lhs - rhs."),
    "multiply": (operator.mul, "lhs * rhs."),
    "divide": (scalar.div, "lhs / rhs; integer results are rounded towards zero."),
    "floor_divide": (scalar.floordiv, "lhs / rhs rounded towards minus infinity."),
    "mod": (scalar.truncmod, "The remainder with the sign of lhs."),
    "floor_mod": (scalar.floormod, "The remainder with the sign of rhs."),
    "maximum": (scalar.max, "The greater of the two."),
    "minimum": (scalar.min, "The lesser of the two."),
    "power": (scalar.power, "lhs to the power of rhs, for floats."),
    "left_shift": (operator.lshift, "lhs << rhs."),
    "right_shift": (operator.rshift, "lhs >> rhs; keeps the sign."),
    "greater": (operator.gt, "lhs > rhs: bool."),
    "less": (operator.lt, "lhs < rhs: bool."),
    "equal": (lambda a, b: binary("eq", a, b), "lhs == rhs: bool."),
    "not_equal": (lambda a, b: binary("ne", a, b), "lhs != rhs: bool."),
    "greater_equal": (operator.ge, "lhs >= rhs: bool."),
    "less_equal": (operator.le, "lhs <= rhs: bool."),
    "logical_and": (lambda a, b: scalar.all(truth(a), truth(b)), "Whether both are true."),
    "logical_or": (lambda a, b: scalar.any(truth(a), truth(b)), "Whether at least one is true."),
    "logical_xor": (lambda a, b: truth(a) != truth(b), "Whether exactly one is true."),
    "bitwise_and": (operator.and_, "lhs & rhs."),
    "bitwise_or": (operator.or_, "lhs | rhs."),
    "bitwise_xor": (operator.xor, "lhs ^ rhs."),
}
"""Binary operators with NumPy's broadcasting, and their meaning. Operands of different dtypes are promoted like scalar expressions."""


def of_topi(name: str) -> Operator:
    """The operator of that name in `tvm.topi`. Raises AttributeError if there is none."""
    return _of_two(name) if name in OF_TWO else _ours(name, name)


def of_nn(name: str) -> Operator:
    """The operator of that name in `tvm.topi.nn`. Raises AttributeError if there is none."""
    return _ours(name, f"nn.{name}")


@cache
def _ours(name: str, path: str) -> Operator:
    if name in RENAMED:
        return RENAMED[name].operator
    if name.startswith("_") or not callable(getattr(nn, name, None)):
        return missing.of_topi(path)
    return Renamed(name).operator


@cache
def _of_two(name: str) -> Operator:
    function, meaning = OF_TWO[name]

    def applied(lhs: Tensor | Expr | Number, rhs: Tensor | Expr | Number) -> Tensor | Expr:
        if isinstance(lhs, Tensor) or isinstance(rhs, Tensor):
            return combine(function, f"T_{name}", lhs, rhs)
        return function(as_expr(lhs), as_expr(rhs))

    applied.__name__ = applied.__qualname__ = name
    applied.__doc__ = f"{meaning} Two scalars give a scalar expression."
    return applied
