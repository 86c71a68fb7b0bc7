"""Turns a sketch of a declaration with open sizes (`ansor.te.size`) into one for given sizes: the same steps on the declaration with these numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.te.expr import Axis, Const, Expr, Reduce
from ansor.te.fold import transform, walk
from ansor.te.size import Guard, Size, Values, value_of
from ansor.te.tensor import Read, Tensor, declared


def open_sizes(tensors: Iterable[Tensor]) -> list[Size]:
    """Every open size in these declarations, given or computed."""
    return [one for one in _numbers(tensors) if isinstance(one, Size)]


def guards_of(tensors: Iterable[Tensor]) -> tuple[Guard, ...]:
    """All decisions made from the sizes of these declarations so far."""
    lists = {id(size.guards): size.guards for size in open_sizes(tensors)}
    return tuple(guard for guards in lists.values() for guard in guards)


def sized(sketch: Sketch, values: Values) -> Sketch:
    """The sketch with these values as sizes. Raises DeclarationError or ScheduleError where the declaration or a step does not fit them."""
    made: dict[int, Tensor] = {}
    for tensor in sketch.dag.stages:
        made[id(tensor)] = _sized(tensor, made, values)
    dag = Dag([made[id(tensor)] for tensor in sketch.dag.tensors])
    return Sketch(dag, sketch.steps, sketch.choices)


def _numbers(tensors: Iterable[Tensor]) -> Iterator[object]:
    for tensor in tensors:
        yield from tensor.shape
        if tensor.compute is not None:
            yield from (number for axis in tensor.compute.reduce_axes for number in (axis.extent, axis.start))
            yield from (node.value for node in walk(tensor.compute.body) if isinstance(node, Const))


def _sized(tensor: Tensor, made: dict[int, Tensor], values: Values) -> Tensor:
    if tensor.compute is None:
        return replace(tensor, shape=tuple(value_of(extent, values) for extent in tensor.shape))
    axes = {
        axis: replace(axis, extent=value_of(axis.extent, values), start=value_of(axis.start, values))
        for axis in (*tensor.compute.axes, *tensor.compute.reduce_axes)
    }

    def number(node: Expr) -> Expr | None:
        if isinstance(node, Axis):
            return axes[node]
        if isinstance(node, Const) and isinstance(node.value, Size):
            return Const(value_of(node.value, values), node.dtype)
        if isinstance(node, Read):
            return Read(made[id(node.tensor)], tuple(transform(index, number) for index in node.indices), node.dtype)
        return None

    body = tensor.compute.body
    if isinstance(body, Reduce):
        body = Reduce(body.combiner, transform(body.source, number), tuple(axes[axis] for axis in body.axes), body.dtype)
    else:
        body = transform(body, number)
    return declared(tensor.name, tuple(axes[axis] for axis in tensor.compute.axes), body, tag=tensor.tag, attrs=tensor.attrs)
