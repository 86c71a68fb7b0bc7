"""The axes of a reduction in normal form. They start at 0 and have more than one value. They are split where only parts are used, fused where they are used as
one, and ordered as the operands use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ansor.ir.normal.sums import Loop, Other, Quotient, Remainder, Sum
from ansor.te.expr import INDEX, Axis, Const, Expr, binary, substitute
from ansor.te.fold import postorder, walk
from ansor.te.tensor import Read


def started(source: Expr, axes: Sequence[Axis]) -> tuple[Expr, tuple[Axis, ...]]:
    """The body over axes that start at 0 and have more than one value; at least one axis stays, since a sum of one element is still a sum."""
    kept = [axis for axis in axes if axis.extent > 1] or list(axes[:1])
    moved = {axis: replace(axis, start=0) for axis in kept if axis.start}
    values: dict[Axis, Expr] = {axis: binary("add", new, axis.start) for axis, new in moved.items()}
    values.update({axis: Const(axis.start, INDEX) for axis in axes if not any(axis is one for one in kept)})
    return substitute(source, values) if values else source, tuple(moved.get(axis, axis) for axis in kept)


def split(source: Expr, axes: Sequence[Axis], sums: Sequence[Sum]) -> tuple[Expr, tuple[Axis, ...]] | None:
    """Split an axis of which only parts are used: `k // 9`, `k // 3 % 3` and `k % 3`. None when there is no such axis."""
    for place, axis in enumerate(axes):
        steps = _steps(axis, sums)
        if steps is None:
            continue
        bounds = [*steps, axis.extent]
        parts = [Axis(f"{axis.name}{chr(97 + number)}", above // below, "reduce") for number, (below, above) in enumerate(pairwise(bounds))][::-1]
        value: Expr = Const(0, INDEX)
        for part, step in zip(parts, reversed(steps), strict=True):
            value = binary("add", value, binary("mul", part, step))
        return substitute(source, {axis: value}), (*axes[:place], *parts, *axes[place + 1 :])
    return None


def _steps(axis: Axis, sums: Sequence[Sum]) -> list[int] | None:
    """Where to cut an axis: 1 and divisors of its extent, each dividing the next; None where the axis is used whole or not at all."""
    found: set[int] = {1}
    for value in sums:
        if not _collect(value, axis, found):
            return None
    steps = sorted(found)
    chained = all(above % below == 0 for below, above in pairwise([*steps, axis.extent])) and steps[-1] < axis.extent
    return steps if chained and len(steps) > 1 else None


def _collect(value: Sum, axis: Axis, found: set[int]) -> bool:
    """Add the divisors that split the axis into the parts used; False where it is used in another way."""
    for part, _ in value.terms:
        if isinstance(part, Loop) and part.axis is axis:
            return False
        if isinstance(part, Other) and any(node is axis for node in walk(part.expr)):
            return False
        if not isinstance(part, Quotient | Remainder):
            continue
        step = _step(part, axis)
        if step is None:
            if not _collect(part.of, axis, found):
                return False
        else:
            found.update(step)
    return True


def _step(part: Quotient | Remainder, axis: Axis) -> tuple[int, ...] | None:
    """The divisors of `axis // m`, `axis % n` and `axis // m % n`."""
    if len(part.of.terms) != 1 or part.of.const or part.of.terms[0][1] != 1:
        return None
    inner = part.of.terms[0][0]
    if isinstance(inner, Loop) and inner.axis is axis:
        return (part.by,)
    if isinstance(part, Remainder) and isinstance(inner, Quotient):
        below = _step(inner, axis)
        return None if below is None else (*below, below[0] * part.by)
    return None


def fused(source: Expr, axes: Sequence[Axis], sums: Sequence[Sum]) -> tuple[Expr, tuple[Axis, ...]] | None:
    """Fuse two axes that are only used as `outer * extent of inner + inner`. None when there are no such axes."""
    for outer in axes:
        for inner in axes:
            if outer is inner or not all(_together(value, outer, inner) for value in sums):
                continue
            if not any(_uses(value, inner) for value in sums):
                continue
            one = Axis(f"{outer.name}{inner.name}", outer.extent * inner.extent, "reduce")
            values: dict[Axis, Expr] = {outer: binary("floordiv", one, inner.extent), inner: binary("floormod", one, inner.extent)}
            return substitute(source, values), tuple(one if axis is outer else axis for axis in axes if axis is not inner)
    return None


def _uses(value: Sum, axis: Axis) -> bool:
    return any(part.axis is axis if isinstance(part, Loop) else isinstance(part, Quotient | Remainder) and _uses(part.of, axis) for part, _ in value.terms)


def _together(value: Sum, outer: Axis, inner: Axis) -> bool:
    counts = {part.axis: c for part, c in value.terms if isinstance(part, Loop)}
    if counts.get(outer, 0) != counts.get(inner, 0) * inner.extent:
        return False
    for part, _ in value.terms:
        if isinstance(part, Quotient | Remainder) and not _together(part.of, outer, inner):
            return False
        if isinstance(part, Other) and any(node is outer or node is inner for node in walk(part.expr)):
            return False
    return True


def in_order(source: Expr, axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes in the order in which reads use them, others last."""
    met: dict[int, Axis] = {}
    own = {id(axis): axis for axis in axes}
    for node in postorder(source):
        if isinstance(node, Read):
            for index in node.indices:
                met.update({id(inner): own[id(inner)] for inner in postorder(index) if id(inner) in own and id(inner) not in met})
    return (*met.values(), *(axis for axis in axes if id(axis) not in met))
