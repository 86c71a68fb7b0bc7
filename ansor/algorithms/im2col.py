"""Convolutions as matrix products (im2col): the windows of the data are written to columns first, and the sum reads these element by element.

    data ─► pad ─► columns[n, rc, rh, rw, h, w] = data[n, rc, stride h + rh, stride w + rw]
    output[n, co, h, w] = sum over rc, rh, rw of columns[n, rc, rh, rw, h, w] * kernel[co, rc, rh, rw]

Every element is written once for each window that holds it. That pays if windows are read in strides, or if short rows leave vectors half empty. The columns
are a stage like any other: the search decides how many exist at a time, and may pack them. Any number of dimensions, any strides, dilations and layouts; but
no groups, since the place in the data then depends on the output channel, and every channel would need its own columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from ansor.algorithms.base import Alternative, register_algorithm
from ansor.algorithms.rewrite import unused, with_tensor
from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Binary, Expr, Reduce, substitute
from ansor.te.fold import transform, walk
from ansor.te.tensor import Compute, Read, Tensor, declared

LEAST_REUSE = 16
"""The least number of outputs that use each column; with fewer, writing the columns costs too much."""


@register_algorithm("im2col")
def im2col(dag: Dag) -> Iterator[Alternative]:
    """The workload over columns, if its only reduction is a sum of products in which one factor slides in steps of more than one element."""
    reductions = [stage for stage in dag.stages if access.has_reduction(stage)]
    if len(reductions) != 1:
        return
    (stage,) = reductions
    read = _sliding(stage)
    if read is not None:
        yield Alternative("im2col", with_tensor(dag, stage, _over_columns(dag, stage, read)))


def _sliding(stage: Tensor) -> Read | None:
    """The factor whose indices combine output axes, in steps of more than one, with reduction axes."""
    assert stage.compute is not None
    body = stage.compute.body
    if not isinstance(body, Reduce) or body.combiner != "sum" or not isinstance(body.source, Binary) or body.source.op != "mul":
        return None
    factors = [side for side in (body.source.left, body.source.right) if isinstance(side, Read)]
    found = [read for read in factors if any(_is_window(index) for index in read.indices)]
    if len(found) != 1 or len(factors) != 2:
        return None
    used = {id(node) for index in found[0].indices for node in walk(index)}
    reuse = prod(axis.extent for axis in stage.compute.axes if id(axis) not in used)
    return found[0] if reuse >= LEAST_REUSE else None


def _is_window(index: Expr) -> bool:
    axes = [node for node in walk(index) if isinstance(node, Axis)]
    steps = [access.step_of(index, axis) for axis in axes if axis.kind == "spatial"]
    return any(axis.kind != "spatial" for axis in axes) and any(step is not None and step > 1 for step in steps)


def _over_columns(dag: Dag, stage: Tensor, read: Read) -> Tensor:
    """The stage, reading columns."""
    assert stage.compute is not None
    axes = _ordered(read)
    own = {axis: Axis(axis.name, axis.extent) for axis in axes}
    places = {axis: new + axis.start if axis.start else new for axis, new in own.items()}
    columns = declared(unused(dag, "columns"), tuple(own.values()), substitute(read, places))
    indices = tuple(axis - axis.start if axis.start else axis for axis in axes)  # columns are counted from 0, wherever a reduction starts

    def turned(node: Expr) -> Expr | None:
        return Read(columns, indices, read.dtype) if node is read else None

    return replace(stage, compute=Compute(stage.compute.axes, stage.compute.reduce_axes, transform(stage.compute.body, turned)))


def _ordered(read: Read) -> list[Axis]:
    """All axes of the read, ordered so that neighbours in the data stay neighbours in the columns: places last if the data ends with a window, else taps."""
    named = list({id(node): node for index in read.indices for node in walk(index) if isinstance(node, Axis)}.values())
    windows = {id(node) for index in read.indices if _is_window(index) for node in walk(index)}
    last_is_window = _is_window(read.indices[-1])

    def place(axis: Axis) -> int:
        if id(axis) not in windows:
            return 0 if last_is_window or axis.kind == "spatial" else 3
        return 1 + (axis.kind == "spatial") if last_is_window else 1 + (axis.kind != "spatial")

    return sorted(named, key=place)
