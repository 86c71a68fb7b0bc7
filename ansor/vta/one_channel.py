"""Rewrites products with one input channel, as in a convolution of a grey image. GEMM adds along channels, so the single channel becomes a reduction axis.

    acc[n, o, y, x] += data[n, 0, y + ky, x + kx] * w[o, 0, ky, kx]        along ky, kx
    acc[n, o, y, x] += data[n, c, y + ky, x + kx] * w[o, c, ky, kx]        along c, ky, kx; c has extent 1, and zeros fill up its block
"""

from __future__ import annotations

from dataclasses import replace

from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Const, Expr, Reduce
from ansor.te.fold import transform
from ansor.te.tensor import Compute, Read, Tensor
from ansor.vta.groups import factors_of, grouping_of


def single_channel(dag: Dag) -> tuple[Tensor, Tensor] | None:
    """The stage that multiplies one channel by weights, and the same stage with an axis for the channel; None if there is no such stage, or its data and
    weights share an axis already."""
    if grouping_of(dag) is not None:
        return None
    sums = [stage for stage in dag.stages if access.has_reduction(stage)] or [stage for stage in dag.stages if factors_of(stage) is not None]
    sides = factors_of(sums[0]) if len(sums) == 1 else None
    if sides is None or sides[0].tensor is sides[1].tensor or _share_an_axis(sums[0], *sides):
        return None
    places = [_only_place(side) for side in sides]
    if None in places:
        return None
    return sums[0], _with_axis(sums[0], dict(zip(map(id, sides), places, strict=True)))


def _share_an_axis(stage: Tensor, data: Read, weights: Read) -> bool:
    """Whether one axis indexes both: an axis of the sum, or, as in depthwise kernels, of the results."""
    assert stage.compute is not None
    axes = (*stage.compute.axes, *stage.compute.reduce_axes)
    return any(all(any(index is axis for index in side.indices) for side in (data, weights)) for axis in axes)


def _only_place(side: Read) -> int | None:
    """The dimension that has one channel; None if there is none."""
    places = [place for place, index in enumerate(side.indices) if isinstance(index, Const) and side.tensor.shape[place] == 1]
    return places[0] if places else None


def _with_axis(stage: Tensor, places: dict[int, int | None]) -> Tensor:
    assert stage.compute is not None
    compute, taken = stage.compute, {axis.name for axis in (*stage.compute.axes, *stage.compute.reduce_axes)}
    name = "rc"
    while name in taken:
        name += "_"
    channel = Axis(name, 1, "reduce")

    def replaced(node: Expr) -> Expr | None:
        place = places.get(id(node))
        if place is None or not isinstance(node, Read):
            return None
        return replace(node, indices=(*node.indices[:place], channel, *node.indices[place + 1 :]))

    axes = (channel, *compute.reduce_axes)
    source = transform(access.value_of(stage), replaced)
    return replace(stage, compute=Compute(compute.axes, axes, Reduce("sum", source, axes, stage.dtype)))
