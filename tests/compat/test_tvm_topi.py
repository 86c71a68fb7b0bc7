"""`tvm.topi`: TVM's names, keywords and default dtypes, and TVM's behaviour where it differs from ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.compat import tvm
from ansor.compat.tvm import te, topi
from ansor.errors import ArgumentError, DeclarationError, TargetError
from ansor.ir.evaluate import evaluate
from ansor.te.tensor import Tensor

Array = NDArray[np.float64]
KEYWORDS = {
    "expand_dims": "a axis num_newaxis", "expand_like": "a shape_like axis", "transpose": "a axes", "flip": "a axis", "strided_set": "a v begin end strides",
    "reverse_sequence": "a seq_lengths seq_axis batch_axis", "strided_slice": "a begin end strides axes slice_mode", "reshape": "a newshape",
    "squeeze": "a axis",
    "concatenate": "a_tuple axis", "stack": "a axis", "split": "ary indices_or_sections axis", "take": "a indices axis batch_dims mode",
    "gather": "data axis indices", "gather_nd": "a indices", "matmul": "a b transp_a transp_b", "tensordot": "a b axes", "arange": "start stop step dtype",
    "meshgrid": "a_tuple indexing", "repeat": "a repeats axis", "tile": "a reps", "layout_transform": "array src_layout dst_layout", "shape": "array dtype",
    "sequence_mask": "data valid_length mask_value axis", "ndarray_size": "array dtype", "where": "condition x y", "unravel_index": "indices shape",
    "one_hot": "indices on_value off_value depth axis dtype", "sparse_to_dense": "sparse_indices output_shape sparse_values default_value",
    "matrix_set_diag": "data diagonal k align", "adv_index": "data indices", "sum": "data axis keepdims", "prod": "data axis keepdims",
    "max": "data axis keepdims", "min": "data axis keepdims", "all": "data axis keepdims", "any": "data axis keepdims",
    "argmax": "data axis keepdims select_last_index", "argmin": "data axis keepdims select_last_index", "elemwise_sum": "xs", "full": "shape dtype fill_value",
    "full_like": "x fill_value", "cumsum": "data axis dtype exclusive", "cumprod": "data axis dtype exclusive", "clip": "x a_min a_max", "cast": "x dtype",
    "broadcast_to": "data shape", "add": "lhs rhs", "floor_mod": "lhs rhs", "greater": "lhs rhs", "logical_and": "lhs rhs", "logical_not": "data",
    "bitwise_not": "data", "exp": "x", "sign": "x", "isnan": "x", "fast_tanh": "x",
    "nn.softmax": "x axis", "nn.leaky_relu": "x alpha", "nn.prelu": "x slope axis", "nn.lrn": "data size axis alpha beta bias",
    "nn.conv2d": "input filter strides padding dilation layout out_dtype", "nn.conv2d_nchw": "Input Filter stride padding dilation out_dtype",
    "nn.conv2d_nhwc": "Input Filter stride padding dilation out_dtype auto_scheduler_rewritten_layout meta_schedule_original_shape",
    "nn.conv1d_ncw": "data kernel strides padding dilation out_dtype", "nn.conv3d_ncdhw": "Input Filter stride padding dilation groups out_dtype",
    "nn.depthwise_conv2d_nchw": "Input Filter stride padding dilation out_dtype", "nn.dilate": "data strides dilation_value name",
    "nn.conv2d_transpose_nchw": "Input Filter strides padding out_dtype output_padding", "nn.global_pool": "data pool_type layout",
    "nn.group_conv2d_nchw": "Input Filter stride padding dilation groups out_dtype", "nn.adaptive_pool": "data output_size pool_type layout",
    "nn.pool2d": "data kernel stride dilation padding pool_type ceil_mode layout count_include_pad", "nn.adaptive_pool3d": "data output_size pool_type layout",
    "nn.pool_grad": "grads data kernel stride padding pool_type ceil_mode layout count_include_pad",
    "nn.pad": "data pad_before pad_after pad_value name attrs",
    "nn.batch_norm": "data gamma beta moving_mean moving_var axis epsilon center scale",
}  # fmt: skip


def value(declare: Callable[..., Tensor], *arrays: NDArray[np.generic]) -> Array:
    """The value of a declaration over placeholders for these arrays."""
    tensors = [te.placeholder(array.shape, str(array.dtype), f"x{k}") for k, array in enumerate(arrays)]
    (found,) = evaluate([declare(*tensors)], dict(zip(tensors, arrays, strict=True)))
    return found


@pytest.mark.parametrize(
    ("module", "names"),
    [("topi", "add dense conv2d_nchw cumsum cast nn"), ("topi.nn", "dense conv2d conv2d_nchw pool2d utils"), ("topi.x86", "dense_pack conv2d_nchw")],
)
def test_names_can_be_listed_and_imported_at_once(module: str, names: str) -> None:
    found: dict[str, object] = {}
    exec(f"from ansor.compat.tvm.{module} import *", found)
    assert set(names.split()) <= set(found) and set(found) - {"__builtins__"} <= set(dir(import_module(f"ansor.compat.tvm.{module}")))


@pytest.mark.parametrize(("path", "names"), KEYWORDS.items())
def test_keywords(path: str, names: str) -> None:
    operator: object = topi
    for part in path.split("."):
        operator = getattr(operator, part)
    assert callable(operator)
    assert list(inspect.signature(operator).parameters) == names.split()


def test_default_dtypes_of_convolutions() -> None:
    data, kernel = te.placeholder((1, 4, 4, 8), "int8", "data"), te.placeholder((3, 3, 8, 2), "int8", "kernel")
    assert topi.nn.conv2d_nhwc(data, kernel, 1, 1, 1).dtype == topi.nn.conv2d(data, kernel, 1, 1, 1, "NHWC").dtype == "float32"
    assert topi.nn.conv2d_nhwc(data, kernel, 1, 1, 1, "int32").dtype == "int32"
    other, mask = te.placeholder((1, 8, 4, 4), "int8", "other"), te.placeholder((2, 8, 3, 3), "int8", "mask")
    assert topi.nn.conv2d_nchw(other, mask, 1, 1, 1).dtype == topi.nn.conv2d(other, mask, 1, 1, 1).dtype == "int8"
    deep, cube = te.placeholder((1, 3, 4, 4, 8), "int8", "deep"), te.placeholder((1, 3, 3, 8, 2), "int8", "cube")
    assert topi.nn.conv3d_ndhwc(deep, cube, 1, 0, 1).dtype == "float32"


def test_convolutions_of_int8_do_not_wrap() -> None:
    data, kernel = np.full((1, 3, 3, 4), 100, np.int8), np.full((3, 3, 4, 1), 100, np.int8)
    assert value(lambda d, k: topi.nn.conv2d_nhwc(d, k, 1, 0, 1), data, kernel).item() == 360_000


def test_scalars_give_scalars() -> None:
    one = te.const(3, "int32")
    assert isinstance(topi.add(one, 1), tvm.tir.PrimExpr) and isinstance(topi.logical_and(True, te.const(False, "bool")), tvm.tir.PrimExpr)
    assert topi.utils.get_const_int(topi.multiply(one, 2)) == 6 and isinstance(topi.cast(one, "float32"), tvm.tir.PrimExpr)


def test_operands_of_two_dtypes() -> None:
    whole, half = np.array([1, 2, 3], np.int32), np.array([0.5, 1.5, -1.0], np.float32)
    np.testing.assert_array_equal(value(topi.add, whole, half), whole + half)
    np.testing.assert_array_equal(value(topi.greater, whole, half), whole > half)
    np.testing.assert_array_equal(value(lambda x: topi.multiply(x, 0.5), whole), whole * 0.5)
    np.testing.assert_array_equal(value(topi.divide, whole, np.array([2, -2, 2], np.int32)), [0, -1, 1])
    np.testing.assert_array_equal(value(lambda x: topi.exp(x), whole), np.exp(whole.astype(np.float32)))


def test_rounding_is_away_from_zero() -> None:
    assert value(topi.round, np.array([0.5, 1.5, 2.5, -2.5], np.float32)).tolist() == [1, 2, 3, -3]


def test_conversion_to_bool_compares_with_zero() -> None:
    assert value(lambda x: topi.cast(x, "bool"), np.array([0, 0.25, -3], np.float32)).tolist() == [False, True, True]
    assert value(lambda x: topi.greater(x, 1).astype("int8"), np.array([0, 2], np.float32)).tolist() == [0, 1]


@pytest.mark.parametrize("pool_type", ["max", "avg"])
@pytest.mark.parametrize("include", [True, False])
def test_ceil_mode_has_windows_that_start_after_the_data(pool_type: str, include: bool) -> None:
    data = np.random.default_rng(0).random((1, 2, 7)).astype(np.float32)
    got = value(lambda d: topi.nn.pool1d(d, 2, 3, 1, (0, 3), pool_type, True, "NCW", include), data)
    places = [data[..., 0:2], data[..., 3:5], data[..., 6:7]]
    want = [window.max(-1) if pool_type == "max" else window.sum(-1) / (2 if include else window.shape[-1]) for window in places]
    assert got.shape == (1, 2, 4) == topi.nn.pool1d(te.placeholder((1, 2, 7), name="d"), 2, 3, 1, (0, 3), pool_type, True).shape
    np.testing.assert_allclose(got[..., :3], np.stack(want, -1), rtol=1e-6)
    assert pool_type == "max" or not got[..., 3].any()


def test_batch_norm_returns_its_statistics() -> None:
    data, mean = te.placeholder((2, 3), name="data"), te.placeholder((3,), name="mean")
    found = topi.nn.batch_norm(data, mean, mean, mean, mean, axis=1, center=False, scale=False)
    assert found[0].shape == (2, 3) and found[1:] == [mean, mean]


def test_slices() -> None:
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(value(lambda x: topi.strided_slice(x, [0, 1], [2, 2], slice_mode="size"), data), data[0:2, 1:3])
    np.testing.assert_array_equal(value(lambda x: topi.strided_slice(x, [0, 1], [-1, -1], slice_mode="size"), data), data[:, 1:])
    np.testing.assert_array_equal(value(lambda x: topi.strided_slice(x, [0, 3], [None, None], [1], axes=[0, 1]), data), data[:, 3:])
    np.testing.assert_array_equal(value(lambda x: topi.strided_slice(x, [3], [None], [-2], axes=[1]), data), data[:, 3::-2])
    bounds = te.placeholder((2,), "int64", "b")
    with pytest.raises(DeclarationError, match="but a shape cannot depend on their values; give Python integers"):
        topi.strided_slice(te.placeholder((3, 4), name="x"), bounds, bounds)  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="give 'end' or 'size'"):
        topi.strided_slice(te.placeholder((3, 4), name="x"), [0], [1], slice_mode="both")


def test_indices_out_of_bounds() -> None:
    data, places = np.arange(4, dtype=np.float32), np.array([1, 3], np.uint8)
    assert value(lambda x, p: topi.take(x, p, mode="fast"), data, places).tolist() == [1, 3]
    with pytest.raises(DeclarationError, match="batch_dims=1"):
        topi.take(te.placeholder((2, 3), name="x"), te.placeholder((2, 1), "int32", "i"), 1, batch_dims=1)


def test_schedules_accept_outputs_at_any_position() -> None:
    a = te.placeholder((4, 4), name="a")
    b = topi.nn.relu(a)
    for module in (topi.generic, topi.x86):
        for s in (module.schedule_injective(b), module.schedule_pool([b], "NCHW"), module.schedule_conv2d_nchw("a configuration", [b])):
            assert "relu" in str(tvm.lower(s, [a, b]))
    with pytest.raises(ArgumentError, match="give the output tensors"):
        topi.generic.schedule_softmax("NCHW")
    with pytest.raises(AttributeError, match=r"asked for tvm\.topi\.generic\.bogus"):
        _ = topi.generic.bogus
    parts = topi.split(a, 2)
    assert str(tvm.lower(topi.generic.schedule_injective(parts), [a, *parts])).count("split_1") > 0


def test_other_devices_can_be_named_in_tables() -> None:
    for device in ("cuda", "gpu", "arm_cpu", "mali", "bifrost", "hls"):
        with pytest.raises(TargetError, match="only CPUs are supported"):
            getattr(import_module(f"ansor.compat.tvm.topi.{device}"), "schedule_softmax")([])  # noqa: B009  # a name that no module lists


def test_utilities() -> None:
    utils = topi.utils
    assert utils.get_const_tuple((te.const(3, "int32"), 4)) == (3, 4) and utils.get_float_tuple((te.const(0.5, "float32"), 1)) == (0.5, 1.0)
    assert utils.equal_const_int(te.const(3, "int32"), 3) and not utils.equal_const_int(te.placeholder((2,), name="x")[0], 3)
    assert utils.prod((2, 3)) == 6 and utils.ceil_div(7, 2) == 4 and utils.simplify(5) == 5 and not utils.is_empty_shape((1, 2))
    assert utils.get_max_power2_factor(24) == 8 and utils.get_max_power2_factor(24, 4) == 4
    assert utils.ravel_index((1, 2), (3, 4)) == 6 and utils.unravel_index(6, (3, 4)) == [1, 2]
    matrix = np.array([[1, 0], [0.5, -2]], np.float32)
    np.testing.assert_array_equal(value(lambda: utils.const_matrix(matrix, "A")), matrix)
    assert topi.tag.is_broadcast("elemwise") and topi.tag.is_injective("injective,x") and not topi.tag.is_injective("comm_reduce")


def test_there_are_no_passes_to_configure() -> None:
    with tvm.transform.PassContext(opt_level=3, disabled_pass=["tir.CommonSubexprElimTIR"]):
        pass
    with pytest.raises(ArgumentError, match="there are no passes to configure: leave it out"):
        tvm.transform.PassContext(config={"tir.UnrollLoop": 1})


@pytest.mark.compiler
def test_programs_of_operators() -> None:
    a, b = te.placeholder((5, 6), name="a"), te.placeholder((5, 6), "int32", "b")
    outs = [topi.argmax(a, 1), topi.cumsum(a, 0), topi.gather(a, 1, b), topi.where(topi.greater(a, 0.0), a, topi.full_like(a, 2.0)), topi.any(a, 0),
            topi.one_hot(b, 1, 0, 3, -1, "int8"), topi.bitwise_xor(topi.left_shift(b, 2), 5), topi.isnan(a), topi.flip(a, 1) + 1, topi.floor_mod(b, 4)]
    func = tvm.build(topi.x86.schedule_injective(outs), [a, b, *outs])
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((5, 6)).astype(np.float32), rng.integers(-3, 6, (5, 6)).astype(np.int32)
    found = [tvm.nd.empty(out.shape, out.dtype) for out in outs]
    func(tvm.nd.array(x), tvm.nd.array(y), *found)
    wants = [x.argmax(1), x.cumsum(0), np.take_along_axis(x, y.clip(0, 5), 1), np.where(x > 0, x, 2), x.any(0),
             np.eye(6)[y.clip(-1, 5), :3] * (y >= 0)[..., None],
             (y << 2) ^ 5, np.isnan(x), x[:, ::-1] + 1, y % 4]
    for one, want in zip(found, wants, strict=True):
        np.testing.assert_allclose(np.asarray(one.numpy(), np.float64), want, rtol=1e-6, atol=1e-6)


@pytest.mark.compiler
@pytest.mark.parametrize("name", ["isfinite", "isinf", "isnan", "round", "floor", "sign"])
def test_programs_named_as_in_c(name: str) -> None:
    a = te.placeholder((6,), name="a")
    b = getattr(topi, name)(a)
    values, found = np.array([0.25, -2.75, np.inf, -np.inf, np.nan, 3.0], np.float32), tvm.nd.empty((6,), b.dtype)
    tvm.build(topi.generic.schedule_injective(b), [a, b], name=name)(tvm.nd.array(values), found)
    np.testing.assert_array_equal(np.nan_to_num(np.asarray(found.numpy(), np.float64)), np.nan_to_num(getattr(np, name)(values).astype(np.float64)))


@pytest.mark.parametrize(
    ("name", "instead"),
    [("sort", "NumPy or PyTorch"), ("argsort", "NumPy or PyTorch"), ("topk", "NumPy or PyTorch"), ("scatter", "sparse_to_dense"),
     ("scatter_nd", "sparse_to_dense"), ("reinterpret", "view")],
)  # fmt: skip
def test_missing_operators_say_what_to_use(name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=f"tvm.topi.{name}, which is not available; .*{instead}"):
        getattr(topi, name)


def test_inverse_functions_and_mirrored_padding() -> None:
    x = np.array([0.25, 0.5], np.float32)
    for name in ("asin", "acos", "atan", "asinh", "atanh"):
        np.testing.assert_allclose(value(getattr(topi, name), x), getattr(np, name.replace("a", "arc", 1))(x), rtol=1e-6)
    assert value(lambda a: topi.nn.mirror_pad(a, (1,), (1,), "SYMMETRIC", name="m"), x).tolist() == [0.25, 0.25, 0.5, 0.5]
