"""Finds a plain 2-D convolution, also in groups, in a workload by its structure, in any layout."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Binary, Cast, Const, Expr, Reduce
from ansor.te.tensor import Read, Tensor


@dataclass(frozen=True)
class Convolution:
    """A stage out[n, co, h, w] = sum over rc, rh, rw of data[n, rc, h + rh, w + rw] * kernel[co, rc, rh, rw], with dimensions in any order.

    In several groups, the channel of the data is co // outputs * channels + rc, with the `outputs` and `channels` of one group.

    `data` is the padded input. Each of the three orders is a permutation: `data_order` has the positions of n, c, h, w among the dimensions of the data,
    `kernel_order` those of o, i, h, w in the kernel, `out_order` those of n, c, h, w in the output.
    """

    stage: Tensor
    data: Tensor
    kernel: Tensor
    data_order: tuple[int, int, int, int]
    kernel_order: tuple[int, int, int, int]
    out_order: tuple[int, int, int, int]
    groups: int = 1

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Batch, output channels, height and width of the output."""
        n, c, h, w = (self.stage.shape[k] for k in self.out_order)
        return n, c, h, w

    @property
    def taps(self) -> tuple[int, int]:
        """Height and width of the kernel."""
        return self.kernel.shape[self.kernel_order[2]], self.kernel.shape[self.kernel_order[3]]

    @property
    def channels(self) -> int:
        """Input channels of a group."""
        return self.kernel.shape[self.kernel_order[1]]

    @property
    def outputs(self) -> int:
        """Output channels of a group."""
        return self.sizes[1] // self.groups


BYTES = ("int8", "uint8")


def find_convolution(dag: Dag, dtype: str = "float32") -> Convolution | None:
    """The only convolution of stride 1 and dilation 1 in a workload; None when there is none, or when there is another reduction.

    dtype: the dtype of its sums. With float32, the operands are float32; with int32, they are bytes converted to int32.
    """
    reductions = [stage for stage in dag.stages if access.has_reduction(stage)]
    return _as_convolution(reductions[0]) if len(reductions) == 1 and reductions[0].dtype == dtype else None


def _as_convolution(stage: Tensor) -> Convolution | None:
    assert stage.compute is not None
    body = stage.compute.body
    if not isinstance(body, Reduce) or body.combiner != "sum" or stage.ndim != 4:
        return None
    product = body.source
    if not (isinstance(product, Binary) and product.op == "mul"):
        return None
    data, kernel = _factor(product.left, stage.dtype), _factor(product.right, stage.dtype)
    if data is None or kernel is None:
        return None
    if not all(isinstance(index, Axis) for index in kernel.indices):
        data, kernel = kernel, data
    return _matched(stage, data, kernel)


def _factor(value: Expr, dtype: str) -> Read | None:
    """The read of an operand of that dtype, or of bytes converted to int32; None for anything else."""
    if dtype == "int32" and isinstance(value, Cast) and value.dtype == dtype:
        return value.value if isinstance(value.value, Read) and value.value.dtype in BYTES else None
    return value if dtype == "float32" and isinstance(value, Read) and value.dtype == dtype else None


def _matched(stage: Tensor, data: Read, kernel: Read) -> Convolution | None:
    assert stage.compute is not None
    reduce_axes, axes = stage.compute.reduce_axes, stage.compute.axes
    if len(reduce_axes) != 3 or any(axis.start for axis in reduce_axes):
        return None
    if len(kernel.indices) != 4 or len(data.indices) != 4 or not all(isinstance(index, Axis) for index in kernel.indices):
        return None
    slides = {k: pair for k, index in enumerate(data.indices) if (pair := _slide(index)) is not None}
    batch = {k: index for k, index in enumerate(data.indices) if isinstance(index, Axis) and index.kind == "spatial"}
    channel = [k for k in range(4) if k not in slides and k not in batch]
    outputs = [axis for axis in kernel.indices if isinstance(axis, Axis) and axis.kind == "spatial"]
    if len(slides) != 2 or len(batch) != 1 or len(outputs) != 1:
        return None
    (data_h, (h, rh)), (data_w, (w, rw)) = slides.items()
    ((data_n, n),), (data_c,), (co,) = batch.items(), channel, outputs
    rc = next((axis for axis in reduce_axes if axis is not rh and axis is not rw), None)
    if rc is None or {id(a) for a in (n, co, h, w)} != {id(a) for a in axes} or {id(a) for a in (rc, rh, rw)} != {id(a) for a in reduce_axes}:
        return None
    if {id(index) for index in kernel.indices} != {id(a) for a in (co, rc, rh, rw)}:
        return None
    groups = _groups(data.indices[data_c], co, rc)
    if groups is None or kernel.tensor.shape != tuple(index.extent for index in kernel.indices if isinstance(index, Axis)):
        return None  # a part of the kernel is no smaller kernel to the algorithms
    at = {id(index): k for k, index in enumerate(kernel.indices)}
    out = {id(axis): k for k, axis in enumerate(axes)}
    return Convolution(
        stage, data.tensor, kernel.tensor, (data_n, data_c, data_h, data_w),
        (at[id(co)], at[id(rc)], at[id(rh)], at[id(rw)]), (out[id(n)], out[id(co)], out[id(h)], out[id(w)]), groups,
    )  # fmt: skip


def _groups(channel: Expr, co: Axis, rc: Axis) -> int | None:
    """How many groups there are, where the data are read at `rc`, or at `co // outputs * rc.extent + rc`."""
    if channel is rc:
        return 1
    if not (isinstance(channel, Binary) and channel.op == "add" and channel.right is rc):
        return None
    first = channel.left
    if not (isinstance(first, Binary) and first.op == "mul" and isinstance(first.right, Const) and first.right.value == rc.extent):
        return None
    group = first.left
    if group is co:
        return co.extent
    if not (isinstance(group, Binary) and group.op == "floordiv" and group.left is co and isinstance(group.right, Const)):
        return None
    outputs = int(group.right.value)
    return co.extent // outputs if co.extent % outputs == 0 else None


def _slide(index: Expr) -> tuple[Axis, Axis] | None:
    """(output axis, tap) of an index `output + tap`."""
    if not (isinstance(index, Binary) and index.op == "add" and isinstance(index.left, Axis) and isinstance(index.right, Axis)):
        return None
    first, second = index.left, index.right
    if first.kind != "spatial":
        first, second = second, first
    return (first, second) if first.kind == "spatial" and second.kind != "spatial" else None
