"""Replaces one stage of a workload and keeps everything around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.te.expr import Axis, Binary, Const, Expr, Reduce, substitute
from ansor.te.fold import transform, walk
from ansor.te.tensor import Compute, Read, Tensor, declared

Element = Callable[[tuple[Expr, ...]], Expr]
"""The value of a stage at given indices."""


def with_stage(dag: Dag, stage: Tensor, element: Element, inputs: Mapping[str, Tensor]) -> Dag:
    """The workload with `element` in place of a stage, and `inputs` in place of placeholders of these names.

    The stage itself disappears unless it is an output, and so do the elementwise stages between it and the outputs: their values are computed where
    they are needed, so that they cost no pass over memory.
    """
    outputs = {tensor.name for tensor in dag.outputs}
    tensors: dict[str, Tensor] = {}
    elements: dict[str, Element] = {}
    made: dict[tuple[str, tuple[int, ...]], tuple[tuple[Expr, ...], Expr]] = {}  # repeated reads at one place are computed once

    def read(node: Expr) -> Expr | None:
        if not isinstance(node, Read):
            return None
        indices = tuple(transform(index, read) for index in node.indices)
        if node.tensor.name not in elements:
            return Read(tensors[node.tensor.name], indices, node.dtype)
        place = (node.tensor.name, tuple(map(id, indices)))
        if place not in made:
            made[place] = (indices, elements[node.tensor.name](indices))
        return made[place][1]

    for old in dag.stages:
        if old.compute is None:
            tensors[old.name] = inputs.get(old.name, old)
        elif old is stage:
            elements[old.name] = element
        elif not any(tensors.get(p.name) is not p for p in access.producers(old)):
            tensors[old.name] = old
        else:
            body = transform(old.compute.body, read)
            if access.is_strictly_inlineable(old) and old.name not in outputs:
                elements[old.name] = _at(body, old.compute.axes)
                continue
            tensors[old.name] = replace(old, compute=Compute(old.compute.axes, old.compute.reduce_axes, body))
        if old is stage and old.name in outputs:
            tensors[old.name] = replace(old, compute=Compute(old.compute.axes, (), element(old.compute.axes)), attrs={}) if old.compute else old
            del elements[old.name]
    return Dag([tensors[tensor.name] for tensor in dag.tensors])


def with_tensor(dag: Dag, stage: Tensor, new: Tensor) -> Dag:
    """The workload with another computed tensor of the same shape in place of a stage."""
    tensors: dict[str, Tensor] = {}

    def read(node: Expr) -> Expr | None:
        return Read(tensors[node.tensor.name], tuple(transform(index, read) for index in node.indices), node.dtype) if isinstance(node, Read) else None

    for old in dag.stages:
        if old is stage:
            tensors[old.name] = new
        elif old.compute is None or not any(tensors.get(p.name) is not p for p in access.producers(old)):
            tensors[old.name] = old
        else:
            tensors[old.name] = replace(old, compute=replace(old.compute, body=transform(old.compute.body, read)))
    return Dag([tensors[tensor.name] for tensor in dag.tensors])


def in_groups(dag: Dag, size: int) -> Dag:
    """The workload with a dimension of its output split in two, if the output divides its index by `size`: the group, and the place in it. No loop then has to
    divide; the memory does not change. Returns the workload itself if it has several outputs or no such division.
    """
    (stage,) = dag.outputs if len(dag.outputs) == 1 else (None,)
    if stage is None or stage.compute is None or stage.compute.reduce_axes:
        return dag
    divided = {id(node.left) for node in walk(stage.compute.body) if isinstance(node, Binary) and node.op == "floordiv" and _is(node.right, size)}
    whole = next((axis for axis in stage.compute.axes if id(axis) in divided), None)
    if whole is None:
        return dag
    group, place = Axis(whole.name, whole.extent // size), Axis("lane", size)

    def replaced(node: Expr) -> Expr | None:
        if isinstance(node, Binary) and node.left is whole and _is(node.right, size) and node.op in ("floordiv", "floormod"):
            return group if node.op == "floordiv" else place
        return group * size + place if node is whole else None

    axes = tuple(one for axis in stage.compute.axes for one in ((group, place) if axis is whole else (axis,)))
    made = declared(stage.name, axes, transform(stage.compute.body, replaced), tag=stage.tag, attrs=stage.attrs)
    return Dag([made if tensor is stage else tensor for tensor in dag.tensors])


def _is(value: Expr, number: int) -> bool:
    return isinstance(value, Const) and value.value == number


def element_of(tensor: Tensor) -> Element:
    """An element of a computed stage without a reduction as an expression; for any other tensor, a read."""
    if tensor.compute is None or isinstance(tensor.compute.body, Reduce):
        return lambda indices: tensor[indices]
    return _at(tensor.compute.body, tensor.compute.axes)


def _at(body: Expr, axes: tuple[Axis, ...]) -> Element:
    return lambda indices: substitute(body, dict(zip(axes, indices, strict=True)))


def unused(dag: Dag, name: str) -> str:
    """`name`, with a number appended if the workload has a tensor of that name."""
    taken = {tensor.name for tensor in dag.stages}
    candidates = (name, *(f"{name}_{k}" for k in range(2, len(taken) + 3)))
    return next(candidate for candidate in candidates if candidate not in taken)
