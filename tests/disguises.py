"""Ways to write a declaration differently without changing what it computes: each takes tensors and returns others."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from ansor.te.expr import Axis, Binary, Cast, Const, Expr, Not, Reduce, Select, is_float, substitute
from ansor.te.fold import fold, transform, with_operands
from ansor.te.tensor import Compute, Read, Tensor, axes_of

Tensors = Sequence[Tensor]
Disguise = Callable[[Tensors, random.Random], list[Tensor]]
Change = Callable[[Expr, random.Random], Expr]


def _stages(tensors: Tensors, change: Callable[[Tensor, Compute], Tensor], before: Callable[[Tensor], Tensor] = lambda one: one) -> list[Tensor]:
    """Change every computed stage, producers first; `before` is what its readers get."""
    made: dict[int, Tensor] = {}
    seen: dict[int, Tensor] = {}

    def visit(tensor: Tensor) -> Tensor:
        if id(tensor) not in made:
            if tensor.compute is None:
                made[id(tensor)] = tensor
            else:
                for read in tensor.compute.reads:
                    visit(read.tensor)
                    if id(read.tensor) not in seen:
                        seen[id(read.tensor)] = before(made[id(read.tensor)])

                def reading(node: Expr, operands: tuple[Expr, ...]) -> Expr:
                    return Read(seen[id(node.tensor)], operands, node.dtype) if isinstance(node, Read) else with_operands(node, operands)

                compute = Compute(tensor.compute.axes, tensor.compute.reduce_axes, fold(tensor.compute.body, reading))
                made[id(tensor)] = change(replace(tensor, compute=compute), compute)
        return made[id(tensor)]

    return [visit(tensor) for tensor in tensors]


def _bodies(tensors: Tensors, change: Callable[[Expr, tuple[Expr, ...]], Expr]) -> list[Tensor]:
    return _stages(tensors, lambda tensor, compute: replace(tensor, compute=Compute(compute.axes, compute.reduce_axes, fold(compute.body, change))))


def _each(change: Change) -> Disguise:
    """A disguise of nodes, applied to half of those that it could change."""

    def disguise(tensors: Tensors, random: random.Random) -> list[Tensor]:
        def half(node: Expr, operands: tuple[Expr, ...]) -> Expr:
            same = with_operands(node, operands)
            return change(same, random) if random.random() < 0.5 else same

        return _bodies(tensors, half)

    return disguise


def _axes(change: Callable[[Axis, random.Random], Expr]) -> Disguise:
    return _each(lambda node, random: change(node, random) if isinstance(node, Axis) else node)


def _int(value: int) -> Const:
    return Const(value, "int32")


def _op(op: str, left: Expr, right: Expr | int) -> Binary:
    other = _int(right) if isinstance(right, int) else right
    return Binary(op, left, other, "bool" if op in ("lt", "le", "gt", "ge") else left.dtype)


def _commuted(node: Expr, random: random.Random) -> Expr:
    return Binary(node.op, node.right, node.left, node.dtype) if isinstance(node, Binary) and node.op in ("add", "mul") else node


def _in_groups(axis: Axis, random: random.Random) -> Expr:
    """A whole axis as its only group, or as groups of one."""
    return _op("add", _op("mul", _op("floordiv", axis, axis.start + axis.extent), axis.start + axis.extent), axis)


def _cut(axis: Axis, random: random.Random) -> Expr:
    parts = random.choice((2, 3, 4, 7))
    return _op("add", _op("mul", _op("floordiv", axis, parts), parts), _op("floormod", axis, parts))


def _moved(axis: Axis, random: random.Random) -> Expr:
    return _op("sub", _op("add", axis, 3), 3)


def _clamped(axis: Axis, random: random.Random) -> Expr:
    return _op("max", _op("min", axis, axis.start + axis.extent - 1), axis.start)


def _times_one(node: Expr, random: random.Random) -> Expr:
    if isinstance(node, Axis):
        return _op("mul", node, 1)
    return Binary("mul", node, Const(1.0, node.dtype), node.dtype) if is_float(node.dtype) and isinstance(node, Read) else node


def _wider(node: Expr, random: random.Random) -> Expr:
    wide = {"float32": "float64", "int8": "int32", "int32": "int64"}.get(node.dtype)
    return Cast(Cast(node, wide), node.dtype) if wide and isinstance(node, Read) else node


def _compared(node: Expr, random: random.Random) -> Expr:
    """An equivalent comparison of integers."""
    if not isinstance(node, Binary) or node.op not in ("lt", "ge") or is_float(node.left.dtype) or node.left.dtype != "int32":
        return node
    ways = (
        Not(Binary({"lt": "ge", "ge": "lt"}[node.op], node.left, node.right, "bool")),
        Binary({"lt": "gt", "ge": "le"}[node.op], node.right, node.left, "bool"),
        Binary(node.op, _op("sub", node.left, node.right), _int(0), "bool"),
        Binary(node.op, _op("mul", node.left, 3), _op("mul", node.right, 3), "bool"),
        Binary({"lt": "le", "ge": "gt"}[node.op], node.left, _op("sub", node.right, 1), "bool"),
    )
    return random.choice(ways)


def _turned(node: Expr, random: random.Random) -> Expr:
    return Select(Not(node.condition), node.otherwise, node.then, node.dtype) if isinstance(node, Select) else node


def _never(node: Expr, random: random.Random) -> Expr:
    """A choice whose outcome follows from the ranges of loops."""
    if not isinstance(node, Read) or not node.indices or not isinstance(node.indices[-1], Axis):
        return node
    axis = node.indices[-1]
    other = Cast(_int(3), node.dtype) if node.dtype != "int32" else _int(3)
    return Select(_op("lt", axis, axis.start + axis.extent), node, other, node.dtype)


def with_other_names(tensors: Tensors, random: random.Random) -> list[Tensor]:
    """Other names of axes."""

    def renamed(tensor: Tensor, compute: Compute) -> Tensor:
        return _over(tensor, compute, {axis: replace(axis, name=f"q{k}") for k, axis in enumerate((*compute.axes, *compute.reduce_axes))})

    return _stages(tensors, renamed)


def _over(tensor: Tensor, compute: Compute, values: dict[Axis, Axis], order: Callable[[Sequence[Axis]], Sequence[Axis]] = tuple) -> Tensor:
    axes = tuple(values.get(axis, axis) for axis in compute.axes)
    reduce_axes = tuple(order([values.get(axis, axis) for axis in compute.reduce_axes]))
    if not isinstance(compute.body, Reduce):
        return replace(tensor, compute=Compute(axes, (), substitute(compute.body, dict(values))))
    source = substitute(compute.body.source, dict(values))
    return replace(tensor, compute=Compute(axes, reduce_axes, replace(compute.body, source=source, axes=reduce_axes)))


def with_reductions_turned(tensors: Tensors, random: random.Random) -> list[Tensor]:
    """Reduce axes in another order."""
    return _stages(tensors, lambda tensor, compute: _over(tensor, compute, {}, lambda axes: random.sample(axes, len(axes))))


def with_reductions_moved(tensors: Tensors, random: random.Random) -> list[Tensor]:
    """Reduce axes that start elsewhere."""

    def moved(tensor: Tensor, compute: Compute) -> Tensor:
        if not isinstance(compute.body, Reduce):
            return tensor
        fresh = {axis: replace(axis, start=axis.start + 2) for axis in compute.reduce_axes}
        source = substitute(compute.body.source, {axis: _op("sub", new, 2) for axis, new in fresh.items()})
        return replace(tensor, compute=Compute(compute.axes, tuple(fresh.values()), replace(compute.body, source=source, axes=tuple(fresh.values()))))

    return _stages(tensors, moved)


def with_reductions_cut(tensors: Tensors, random: random.Random) -> list[Tensor]:
    """A reduce axis as two."""

    def cut(tensor: Tensor, compute: Compute) -> Tensor:
        found = [axis for axis in compute.reduce_axes if axis.extent % 4 == 0 and axis.start == 0]
        if not found or not isinstance(compute.body, Reduce):
            return tensor
        axis = random.choice(found)
        outer, inner = Axis(f"{axis.name}q", axis.extent // 4, "reduce"), Axis(f"{axis.name}p", 4, "reduce")
        source = substitute(compute.body.source, {axis: _op("add", _op("mul", outer, 4), inner)})
        axes = (inner, *(one for one in compute.reduce_axes if one is not axis), outer)
        return replace(tensor, compute=Compute(compute.axes, axes, replace(compute.body, source=source, axes=axes)))

    return _stages(tensors, cut)


def with_reductions_as_one(tensors: Tensors, random: random.Random) -> list[Tensor]:
    """All reduce axes as one."""

    def one(tensor: Tensor, compute: Compute) -> Tensor:
        if not isinstance(compute.body, Reduce) or any(axis.start for axis in compute.reduce_axes):
            return tensor
        length = 1
        for axis in compute.reduce_axes:
            length *= axis.extent
        whole, below, values = Axis("kk", length, "reduce"), 1, {}
        for axis in reversed(compute.reduce_axes):
            values[axis] = _op("floormod", _op("floordiv", whole, below), axis.extent)
            below *= axis.extent
        source = transform(compute.body.source, lambda node: values.get(node) if isinstance(node, Axis) else None)
        return replace(tensor, compute=Compute(compute.axes, (whole,), replace(compute.body, source=source, axes=(whole,))))

    return _stages(tensors, one)


def with_copies(tensors: Tensors, random: random.Random) -> list[Tensor]:
    """Stages in between that only copy."""

    def copied(tensor: Tensor) -> Tensor:
        axes = axes_of(tensor.shape)
        return Tensor(f"{tensor.name}_copy", tensor.shape, tensor.dtype, Compute(axes, (), Read(tensor, axes, tensor.dtype)))

    return _stages(tensors, lambda tensor, compute: tensor, copied)


DISGUISES: dict[str, Disguise] = {
    "operands the other way round": _each(_commuted),
    "axes as the only one of their groups": _axes(_in_groups),
    "axes as quotient and remainder": _axes(_cut),
    "axes there and back": _axes(_moved),
    "axes within their bounds": _axes(_clamped),
    "times one": _each(_times_one),
    "wider and back": _each(_wider),
    "other comparisons": _each(_compared),
    "choices turned": _each(_turned),
    "choices that are none": _each(_never),
    "other names": with_other_names,
    "reductions in another order": with_reductions_turned,
    "reductions from elsewhere": with_reductions_moved,
    "reductions in two loops": with_reductions_cut,
    "reductions in one loop": with_reductions_as_one,
    "copies": with_copies,
}


def disguised(tensors: Tensors, names: Sequence[str], seed: int) -> list[Tensor]:
    """The tensors with these disguises applied one after the other."""
    generator, made = random.Random(seed), list(tensors)
    for name in names:
        made = DISGUISES[name](made, generator)
    return made
