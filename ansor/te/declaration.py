"""Tensors declared by a function of their indices: `te.compute`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from ansor.errors import DeclarationError
from ansor.support.text import counted
from ansor.te.expr import INDEX, Axis, Const, Expr, Operand, Reduce, Select, as_expr, binary, identity_of, substitute
from ansor.te.extreme_place import place_of_extreme
from ansor.te.tensor import Tensor, checked_shape, declared, with_axes


@dataclass(frozen=True)
class Extreme:
    """Reduces pairs to the one whose member `at` is greatest or least: what `te.comm_reducer` makes of argmax and argmin.

    extreme: max or min. last: keep the last of equal ones in the order of the axes, else the first. where: the places that count.
    identity: the other member if no place counts.
    """

    extreme: str
    at: int
    last: bool
    sources: tuple[Expr, Expr]
    axes: tuple[Axis, ...]
    where: Expr | None
    identity: Expr


def compute(
    shape: int | float | Sequence[int | float],
    fcompute: Callable[..., Operand | Sequence[Operand] | Extreme],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
    *,
    check_reads: bool = True,
) -> Tensor:
    """A tensor whose element at `(i, j, ...)` is `fcompute(i, j, ...)`. Axes are named after the function's parameters.

    A function that returns a tuple declares one tensor per member, `name_v0`, `name_v1`, ..., and the result is a tuple of them.

    Raises DeclarationError for a wrong number of parameters, a reduction inside an expression, or a read that provably leaves its tensor; with
    `check_reads=False` the last is raised by what makes a program of it.
    """
    extents = checked_shape(shape, f"compute {name}")
    axes = tuple(Axis(label, extent) for label, extent in zip(_axis_names(fcompute, len(extents), name), extents, strict=True))
    result = _element(fcompute, axes, name)
    if isinstance(result, Extreme):
        return _places(name, axes, result)  # type: ignore[return-value]  # as below
    if isinstance(result, tuple | list):
        parts = [_copied(axes, as_expr(part)) for part in result]
        made = [declared(f"{name}_v{k}", own, part, tag=tag, attrs=attrs, check_reads=check_reads) for k, (own, part) in enumerate(parts)]
        return tuple(made)  # type: ignore[return-value]  # the usual result is one tensor, and callers should not have to ask
    body = as_expr(cast(Operand, result), "float32" if not isinstance(fcompute, Expr) else None)
    return declared(name, axes, body, tag=tag, attrs=attrs, check_reads=check_reads)


def _element(fcompute: Callable[..., Operand | Sequence[Operand] | Extreme], axes: tuple[Axis, ...], name: str) -> Operand | Sequence[Operand] | Extreme:
    try:
        return fcompute(*axes)
    except IndexError as error:
        if not str(error).startswith("only integers"):  # the message of NumPy and PyTorch for an index that is an expression
            raise
        raise DeclarationError(
            f"asked for compute {name}, whose function indexes a NumPy array or a torch tensor by an axis, which has no value while declaring; "
            "read a te.placeholder(array.shape, str(array.dtype), constant=True) instead, and pass the array when you call the kernel"
        ) from error


def _copied(axes: tuple[Axis, ...], body: Expr) -> tuple[tuple[Axis, ...], Expr]:
    """The body over fresh axes, since each of several outputs needs its own."""
    fresh = {axis: replace(axis) for axis in (*axes, *(body.axes if isinstance(body, Reduce) else ()))}
    return tuple(fresh[axis] for axis in axes), with_axes(body, fresh)


def _places(name: str, axes: tuple[Axis, ...], wanted: Extreme) -> tuple[Tensor, Tensor]:
    """The stages of an extreme and its other member: the extreme value, the place of its first or last occurrence, and the other member at that place."""
    value, other = wanted.sources[wanted.at], wanted.sources[1 - wanted.at]
    start = Const(identity_of(wanted.extreme, value.dtype), value.dtype)
    kept = value if wanted.where is None else Select(wanted.where, value, start, value.dtype)
    best = declared(f"{name}_v{wanted.at}", *_copied(axes, Reduce(wanted.extreme, kept, wanted.axes, value.dtype)))
    nowhere = -1 if wanted.last else math.prod(axis.extent for axis in wanted.axes)
    source = place_of_extreme(value, best[axes], [(axis - axis.start, axis.extent) for axis in wanted.axes], nowhere, wanted.where)
    places = declared(f"{name}_place", *_copied(axes, Reduce("max" if wanted.last else "min", source, wanted.axes, INDEX)))
    at, apart = places[axes], {}
    for axis in reversed(wanted.axes):
        apart[axis] = at % axis.extent + axis.start
        at = at // axis.extent
    there = Select(binary("eq", places[axes], Const(nowhere, INDEX)), wanted.identity, substitute(other, apart), other.dtype)
    second = declared(f"{name}_v{1 - wanted.at}", *_copied(axes, there))
    return (best, second) if wanted.at == 0 else (second, best)


def _axis_names(function: Callable[..., object], rank: int, name: str) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    if variadic and len(names) <= rank:
        return names + [f"i{k}" for k in range(len(names), rank)]
    if len(names) != rank:
        raise DeclarationError(f"asked for compute {name} of rank {rank} with a function of {counted(len(names), 'parameter')}; give one for each dimension")
    return names
