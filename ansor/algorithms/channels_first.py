"""Convolutions with few output channels, whose data have channels last: vectors run along a row instead, of data with their channels first.

    y[n, h, w, o] = sum over rh, rw, rc of x[n, h + rh, w + rw, rc] * k[rh, rw, rc, o]

    turned[n, rc, h, w] = x[n, h, w, rc]
    sums[n, h, o, w]    = sum over rh, rw, rc of turned[n, rc, h + rh, w + rw] * k[rh, rw, rc, o]
    y[n, h, w, o]       = sums[n, h, o, w]

Three output channels fill a fifth of a vector of 16; a row of 32 pixels fills two. That is worth a copy of the data where each element is used often.
The phases of a transposed convolution are computed so, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from ansor.algorithms.base import Alternative, register_algorithm
from ansor.algorithms.rewrite import Element, element_of, unused, with_stage
from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Binary, Expr, Reduce, is_float, substitute
from ansor.te.fold import transform, walk
from ansor.te.scalar import sum as sum_over
from ansor.te.tensor import Read, Tensor, declared

NAME = "channels_first"

MOST_CHANNELS = 8
"""Output channels that leave at least half of a vector of 16 empty."""

LEAST_ROW = 16
"""Elements of a row."""

LEAST_REUSE = 8
"""Products of each element of the data, below which turning them costs too much."""


@dataclass(frozen=True)
class _Rows:
    """A stage that sums products. `data`: what it reads at a row; `row`: the output axis along it."""

    stage: Tensor
    data: Read
    row: Axis


@register_algorithm(NAME, everywhere=False)
def channels_first(dag: Dag) -> Iterator[Alternative]:
    """The workload with the data of its only reduction turned, where that has few output channels, and rows to run along instead."""
    reductions = [stage for stage in dag.stages if access.has_reduction(stage)]
    found = _rows(reductions[0]) if len(reductions) == 1 else None
    if found is not None:
        yield _turned(dag, found)


def _rows(stage: Tensor) -> _Rows | None:
    assert stage.compute is not None
    body, axes = stage.compute.body, stage.compute.axes
    if not isinstance(body, Reduce) or body.combiner != "sum" or not is_float(stage.dtype) or any(axis.start for axis in stage.compute.reduce_axes):
        return None
    product = body.source
    if not (isinstance(product, Binary) and product.op == "mul" and isinstance(product.left, Read) and isinstance(product.right, Read)):
        return None
    if len(axes) < 2 or axes[-1].extent > MOST_CHANNELS:
        return None
    data, weights = product.left, product.right
    if _uses(data, axes[-1]):
        data, weights = weights, data
    channel = data.indices[-1]
    if _uses(data, axes[-1]) or data.tensor is weights.tensor or not isinstance(channel, Axis) or channel.kind == "spatial":
        return None
    rows = [axis for axis in axes if axis.extent >= LEAST_ROW and not _uses(weights, axis) and access.memory_step(data, axis) == data.tensor.shape[-1]]
    products = prod(axis.extent for axis in (*axes, *stage.compute.reduce_axes))
    return _Rows(stage, data, rows[-1]) if rows and products >= LEAST_REUSE * data.tensor.size else None


def _uses(read: Read, axis: Axis) -> bool:
    return any(node is axis for index in read.indices for node in walk(index))


def _turned(dag: Dag, found: _Rows) -> Alternative:
    """Data with the channels before the places that a window moves over, and sums with the row last."""
    compute, tensor = found.stage.compute, found.data.tensor
    assert compute is not None
    last = tensor.ndim - 1
    before = next(k for k, index in enumerate(found.data.indices) if not isinstance(index, Axis) or index is found.row)
    order = (*range(before), last, *range(before, last))
    places = [Axis(f"d{k}", extent) for k, extent in enumerate(tensor.shape)]
    turned = declared(unused(dag, "turned"), tuple(places[k] for k in order), _value(dag, tensor)(tuple(places)))

    def read(node: Expr) -> Expr | None:
        return Read(turned, tuple(node.indices[k] for k in order), node.dtype) if node is found.data else None

    own = {axis: Axis(axis.name, axis.extent, axis.kind) for axis in (*compute.axes, *compute.reduce_axes)}
    body = substitute(transform(access.value_of(found.stage), read), dict(own))
    outputs = [axis for axis in compute.axes if axis is not found.row] + [found.row]
    sums = declared(unused(dag, "row_sums"), tuple(own[axis] for axis in outputs), sum_over(body, axis=[own[axis] for axis in compute.reduce_axes]))

    def element(indices: tuple[Expr, ...]) -> Expr:
        at = dict(zip(compute.axes, indices, strict=True))
        return sums[tuple(at[axis] for axis in outputs)]

    return Alternative(NAME, with_stage(dag, found.stage, element, {}))


def _value(dag: Dag, tensor: Tensor) -> Element:
    """What the data are; a padding that only the convolution reads is part of the copy."""
    readers = [stage for stage in dag.stages if tensor in access.producers(stage)]
    return element_of(tensor) if len(readers) == 1 and tensor not in dag.outputs else tensor.__getitem__
