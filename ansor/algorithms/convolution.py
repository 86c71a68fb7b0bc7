"""Finds a plain convolution over two or three dimensions, also in groups, in a workload by its structure, in any layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Binary, Cast, Const, Expr, Reduce
from ansor.te.tensor import Read, Tensor


@dataclass(frozen=True)
class Convolution:
    """A stage out[n, co, h, w] = sum over rc, rh, rw of data[n, rc, h + rh, w + rw] * kernel[co, rc, rh, rw], with dimensions in any order.

    In several groups, the channel of the data is co // outputs * channels + rc, with the `outputs` and `channels` of one group.

    With three spatial dimensions, d is the one that has no taps, data[n, rc, d, ...] * kernel[co, rc, 0, ...], or else the first. A convolution with one place
    of d in the output is not found: in normal form, its data are read at the tap alone, as at a channel.

    `data` is the padded input. Each of the three orders is a permutation: `data_order` has the positions of n, c, (d,) h, w among the dimensions of the data,
    `kernel_order` those of o, i, (d,) h, w in the kernel, `out_order` those of n, c, (d,) h, w in the output.
    """

    stage: Tensor
    data: Tensor
    kernel: Tensor
    data_order: tuple[int, ...]
    kernel_order: tuple[int, ...]
    out_order: tuple[int, ...]
    groups: int = 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """Batch, output channels, (depth,) height and width of the output."""
        return tuple(self.stage.shape[k] for k in self.out_order)

    @property
    def taps(self) -> tuple[int, ...]:
        """(Depth,) height and width of the kernel."""
        return tuple(self.kernel.shape[k] for k in self.kernel_order[2:])

    @property
    def slices(self) -> tuple[int, int]:
        """How many images the output has, and those of the data that are read: a batch has one for each place in its depth."""
        n, _, *depth = self.sizes[:-2]
        return n * prod(depth), n * (prod(depth) + prod(self.taps[:-2]) - 1)

    @property
    def channels(self) -> int:
        """Input channels of a group."""
        return self.kernel.shape[self.kernel_order[1]]

    @property
    def outputs(self) -> int:
        """Output channels of a group."""
        return self.sizes[1] // self.groups


BYTES = ("int8", "uint8")


def find_convolution(dag: Dag, dtype: str = "float32", dimensions: Sequence[int] = (2,)) -> Convolution | None:
    """The only convolution of stride 1 and dilation 1 in a workload; None when there is none, or when there is another reduction.

    dtype: the dtype of its sums. With float32, the operands are float32; with int32, they are bytes converted to int32.
    dimensions: how many spatial dimensions it may have.
    """
    reductions = [stage for stage in dag.stages if access.has_reduction(stage)]
    if len(reductions) != 1 or reductions[0].dtype != dtype or reductions[0].ndim - 2 not in dimensions:
        return None
    found = _as_convolution(reductions[0])
    if found is None or found.data is found.kernel:
        return None
    is_shared = sum(found.kernel in access.producers(stage) for stage in dag.stages) > 1
    return None if is_shared and found.kernel.constant else found  # algorithms replace constant kernels


def _as_convolution(stage: Tensor) -> Convolution | None:
    assert stage.compute is not None
    body = stage.compute.body
    if not isinstance(body, Reduce) or body.combiner != "sum":
        return None
    product = body.source
    if not (isinstance(product, Binary) and product.op == "mul"):
        return None
    data, kernel = _factor(product.left, stage.dtype), _factor(product.right, stage.dtype)
    if data is None or kernel is None:
        return None
    if any(_slide(index) for index in kernel.indices):
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
    if {len(data.indices), len(kernel.indices)} != {stage.ndim} or any(axis.start for axis in reduce_axes):
        return None
    if not all(_is_whole(index, extent) for index, extent in zip(kernel.indices, kernel.tensor.shape, strict=True)):
        return None
    slides = {k: pair for k, index in enumerate(data.indices) if (pair := _slide(index)) is not None}
    plain = {k: index for k, index in enumerate(data.indices) if isinstance(index, Axis) and index.kind == "spatial"}
    channel = [k for k in range(stage.ndim) if k not in slides and k not in plain]
    outputs = [axis for axis in kernel.indices if isinstance(axis, Axis) and axis.kind == "spatial"]
    if len(slides) < 2 or not plain or len(channel) != 1 or len(outputs) != 1:
        return None
    (data_n, n), *untapped = plain.items()
    (data_c,), (co,) = channel, outputs
    places = [k for k, _ in untapped] + list(slides)
    slid, taps = [axis for _, axis in untapped] + [axis for axis, _ in slides.values()], [tap for _, tap in slides.values()]
    rc = next((axis for axis in reduce_axes if not any(axis is tap for tap in taps)), None)
    if rc is None or _ids(n, co, *slid) != _ids(*axes) or _ids(rc, *taps) != _ids(*reduce_axes):
        return None
    if _ids(*(index for index in kernel.indices if isinstance(index, Axis))) != _ids(co, rc, *taps):
        return None
    groups = _groups(data.indices[data_c], co, rc)
    if groups is None:
        return None
    at = {id(index): k for k, index in enumerate(kernel.indices)}
    fixed = [k for k, index in enumerate(kernel.indices) if not isinstance(index, Axis)]
    out = {id(axis): k for k, axis in enumerate(axes)}
    return Convolution(
        stage, data.tensor, kernel.tensor, (data_n, data_c, *places), (at[id(co)], at[id(rc)], *fixed, *(at[id(tap)] for tap in taps)),
        (out[id(n)], out[id(co)], *(out[id(axis)] for axis in slid)), groups,
    )  # fmt: skip


def _is_whole(index: Expr, extent: int) -> bool:
    """Whether the kernel is read from its first element to its last in a dimension: a part of a kernel is no smaller kernel to the algorithms."""
    return index.extent == extent if isinstance(index, Axis) else extent == 1 and isinstance(index, Const)


def _ids(*axes: Axis) -> list[int]:
    """Of axes in any order. An axis that is there twice, as in a sum over a diagonal, counts twice."""
    return sorted(map(id, axes))


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
