"""Tensors: placeholders (given) and computes (declared).

    a = te.placeholder((n, k), name="A")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
"""

from __future__ import annotations

import inspect
import itertools
import numbers
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

from ansor.errors import DeclarationError
from ansor.support.text import counted
from ansor.te.expr import (
    INDEX,
    LOGIC,
    Axis,
    Binary,
    Const,
    Expr,
    Operand,
    Read,
    Reduce,
    Select,
    as_expr,
    binary,
    check_dtype,
    identity_of,
    is_float,
    substitute,
    walk,
)
from ansor.te.interval import decided, proven_outside
from ansor.te.operation import Operation
from ansor.te.operators import Operators
from ansor.te.tensor_slice import TensorSlice

_fresh = itertools.count()


@dataclass(frozen=True, eq=False)
class Compute:
    """How a tensor is computed: one axis per dimension, reduce axes (perhaps none), and the value at those axes."""

    axes: tuple[Axis, ...]
    reduce_axes: tuple[Axis, ...]
    body: Expr

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """Every read of the body: asked for again and again while sketches are derived."""
        return tuple(node for node in walk(self.body) if isinstance(node, Read))


@dataclass(frozen=True, eq=False)
class Tensor(Operators["Tensor"]):
    """A dense array: `shape` in elements, `dtype`, and how it comes about (`compute` is None for a placeholder).

    `constant` marks a placeholder whose value is known ahead of time (weights), so its memory order is free to choose.
    Operators (`a + b`, `a * 2.0`, `-a`, `a < b`) are elementwise, with NumPy's broadcasting, and give tensors; `==` compares identity.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    compute: Compute | None = None
    constant: bool = False
    tag: str = ""
    attrs: Mapping[str, object] = field(default_factory=dict)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        result = 1
        for extent in self.shape:
            result *= extent
        return result

    @property
    def is_placeholder(self) -> bool:
        return self.compute is None

    @property
    def op(self) -> Operation:
        """What computes it, with its axes: for schedules written by hand."""
        return Operation(self)

    def _apply(self, operation: str, left: object, right: object) -> Tensor:
        from ansor.te.nn.elementwise import applied

        return applied(operation, left, right)

    def __invert__(self) -> Tensor:
        from ansor.te.nn.elementwise import elementwise

        return elementwise(self, operator.invert, "T_bitwise_not")

    def astype(self, dtype: str) -> Tensor:
        """Every element converted to `dtype`."""
        from ansor.te.nn.elementwise import cast

        return cast(self, dtype, "T_cast")

    def __getitem__(self, indices: Operand | tuple[Operand, ...]) -> Expr:
        """`tensor[i, j]` or `tensor[i][j]`: one element. Rank 0 is read as `tensor[()]`; with fewer indices it is a slice, to be indexed further."""
        given = indices if isinstance(indices, tuple) else (indices,)
        if 0 < len(given) < self.ndim:
            return TensorSlice(self, given)  # type: ignore[return-value]  # typed as what it is for: an element, once it has all indices
        if len(given) != self.ndim:
            raise DeclarationError(
                f"asked to read tensor {self.name} of shape {self.shape} with {len(given)} "
                f"{'index' if len(given) == 1 else 'indices'}; it has {self.ndim} dimensions: give one index for each"
            )
        exprs = []
        for dimension, index in enumerate(given):
            expr = as_expr(index, INDEX)
            if not (expr.dtype.startswith("int") or expr.dtype == "uint8"):
                raise DeclarationError(
                    f"asked to read tensor {self.name} at `{expr}` in dimension {dimension}, which has dtype {expr.dtype}; indices are integers"
                )
            exprs.append(expr)
        return Read(self, tuple(exprs), self.dtype)

    def __call__(self, *indices: Operand) -> Expr:
        """`tensor(i, j)`: the same as `tensor[i, j]`, all indices at once."""
        return as_expr(self[indices])

    def __iter__(self) -> None:
        raise DeclarationError(f"tensor {self.name} cannot be iterated over while declaring; index it: {self.name}[i]")

    def __repr__(self) -> str:
        return f"Tensor({self.name}, {self.shape}, {self.dtype})"


def _checked_shape(shape: int | float | Sequence[int | float], what: str) -> tuple[int, ...]:
    extents = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    checked = []
    for dimension, extent in enumerate(extents):
        value = whole_number(extent)
        if value is None:
            raise DeclarationError(f"asked for {what} with extent {extent!r} in dimension {dimension}; extents are whole numbers: {_whole(extent)}")
        if value <= 0:
            raise DeclarationError(f"asked for {what} with extent {value} in dimension {dimension}; extents have to be at least 1")
        checked.append(value)
    return tuple(checked)


def whole_number(value: object) -> int | None:
    """`value` as an int: any integer, a float without fraction (`n / 4`), a constant expression; None for anything else."""
    if isinstance(value, Const):
        value = value.value
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return int(float(value)) if float(value).is_integer() else None
    try:
        return operator.index(value)  # type: ignore[arg-type]  # that is what is asked
    except TypeError:
        return None


def _whole(extent: object) -> str:
    if isinstance(extent, Expr):
        return "make one declaration for each size, with a function of the sizes"
    return "divide with // where it should be rounded" if isinstance(extent, float) else "give a Python integer"


def placeholder(shape: int | float | Sequence[int | float], dtype: str = "float32", name: str = "placeholder", *, constant: bool = False) -> Tensor:
    """A tensor given from outside. `constant=True`: known ahead of time (weights), so it may be stored in another order."""
    return Tensor(name, _checked_shape(shape, f"placeholder {name}"), check_dtype(dtype), constant=constant)


def reduce_axis(dom: int | float | tuple[int | float, int | float], name: str | None = None) -> Axis:
    """An axis to reduce over: `(start, end)`, or an extent. Unnamed axes get a name nobody else has."""
    label = name if name is not None else f"r{next(_fresh)}"
    ends = tuple(dom) if isinstance(dom, Iterable) else (0, dom)
    whole = [whole_number(end) for end in ends]
    if len(whole) != 2 or whole[0] is None or whole[1] is None:
        raise DeclarationError(f"asked for reduce axis {label} over {dom!r}; give (start, end) or an extent, whole numbers")
    start, end = whole[0], whole[1]
    if end <= start:
        raise DeclarationError(f"asked for reduce axis {label} over {start}..{end}, which is empty; it needs at least one value")
    return Axis(label, end - start, "reduce", start)


@dataclass(frozen=True)
class Extreme:
    """Pairs reduced to that with the greatest or least member `at`: what `te.comm_reducer` makes of argmax and argmin.

    extreme: max or min. last: of equal ones the last is kept, else the first, in the order of the axes. where: the places that count.
    identity: the other member where none counts.
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
) -> Tensor:
    """A tensor whose element at `(i, j, ...)` is `fcompute(i, j, ...)`. Axes are named after the function's parameters.

    A function that gives a tuple declares a tensor for each member, `name_v0`, `name_v1`, ..., and a tuple of them is the result.

    Raises DeclarationError for a wrong number of parameters, a reduction inside an expression, or a read that provably leaves its tensor.
    """
    extents = _checked_shape(shape, f"compute {name}")
    axes = tuple(Axis(label, extent) for label, extent in zip(_axis_names(fcompute, len(extents), name), extents, strict=True))
    result = fcompute(*axes)
    if isinstance(result, Extreme):
        return _places(name, axes, result)  # type: ignore[return-value]  # as below
    if isinstance(result, tuple | list):
        parts = [_copied(axes, as_expr(part)) for part in result]
        return tuple(declared(f"{name}_v{k}", own, part, tag=tag, attrs=attrs) for k, (own, part) in enumerate(parts))  # type: ignore[return-value]  # rare
    body = as_expr(cast(Operand, result), "float32" if not isinstance(fcompute, Expr) else None)
    return declared(name, axes, body, tag=tag, attrs=attrs)


def declared(name: str, axes: tuple[Axis, ...], body: Expr, *, tag: str = "", attrs: Mapping[str, object] | None = None) -> Tensor:
    """A computed tensor over given axes, checked. Of reduce axes with one name the later ones get another."""
    reduce_axes = body.axes if isinstance(body, Reduce) else ()
    _check_names(name, axes, reduce_axes)
    _check_reductions(name, body)
    _check_axes(name, body, axes + reduce_axes)
    fresh = _renamed(axes + reduce_axes)
    if fresh:
        body = _with_axes(body, fresh)
        axes, reduce_axes = (tuple(fresh.get(axis, axis) for axis in group) for group in (axes, reduce_axes))
    _check_reads(name, body)
    return Tensor(name, tuple(axis.extent for axis in axes), body.dtype, Compute(axes, reduce_axes, body), tag=tag, attrs=dict(attrs or {}))


def _renamed(axes: tuple[Axis, ...]) -> dict[Axis, Axis]:
    """Axes whose name another one has already, with names of their own."""
    taken = {axis.name for axis in axes}
    met: set[str] = set()
    fresh: dict[Axis, Axis] = {}
    for axis in axes:
        if axis.name in met:
            label = next(f"{axis.name}{k}" for k in itertools.count(1) if f"{axis.name}{k}" not in taken)
            fresh[axis] = replace(axis, name=label)
            taken.add(label)
        met.add(axis.name)
    return fresh


def _with_axes(body: Expr, fresh: Mapping[Axis, Axis]) -> Expr:
    """The body over other axes, those it reduces over included."""
    values: dict[Axis, Expr] = dict(fresh)
    if isinstance(body, Reduce):
        return Reduce(body.combiner, substitute(body.source, values), tuple(fresh.get(axis, axis) for axis in body.axes), body.dtype)
    return substitute(body, values)


def _copied(axes: tuple[Axis, ...], body: Expr) -> tuple[tuple[Axis, ...], Expr]:
    """Axes of its own for one of several outputs."""
    fresh = {axis: replace(axis) for axis in (*axes, *(body.axes if isinstance(body, Reduce) else ()))}
    return tuple(fresh[axis] for axis in axes), _with_axes(body, fresh)


def _places(name: str, axes: tuple[Axis, ...], wanted: Extreme) -> tuple[Tensor, Tensor]:
    """The stages of an extreme and the other member there: the value, the place of its first occurrence, and what is found at that place."""
    value, other = wanted.sources[wanted.at], wanted.sources[1 - wanted.at]
    counted = wanted.where if wanted.where is not None else Const(True, "bool")
    start = Const(identity_of(wanted.extreme, value.dtype), value.dtype)
    kept = value if wanted.where is None else Select(wanted.where, value, start, value.dtype)
    best = declared(f"{name}_v{wanted.at}", *_copied(axes, Reduce(wanted.extreme, kept, wanted.axes, value.dtype)))
    found = binary("eq", value, best[axes])
    if is_float(value.dtype):
        found = binary("or", found, binary("ne", value, value))  # the extreme of values with a NaN is NaN, which equals nothing
    place: Expr = Const(0, INDEX)
    count = 1
    for axis in wanted.axes:
        place, count = place * axis.extent + (axis - axis.start), count * axis.extent
    nowhere = Const(-1 if wanted.last else count, INDEX)
    source = Select(binary("and", counted, found), place, nowhere, INDEX)
    places = declared(f"{name}_place", *_copied(axes, Reduce("max" if wanted.last else "min", source, wanted.axes, INDEX)))
    at, apart = places[axes], {}
    for axis in reversed(wanted.axes):
        apart[axis] = at % axis.extent + axis.start
        at = at // axis.extent
    there = Select(binary("eq", places[axes], nowhere), wanted.identity, substitute(other, apart), other.dtype)
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


def _check_names(name: str, axes: tuple[Axis, ...], reduce_axes: tuple[Axis, ...]) -> None:
    """An axis of the output and one that is reduced over may not have one name: nobody could tell which of them an index means."""
    known = {axis.name: axis for axis in axes}
    for axis in reduce_axes:
        if axis.name in known:
            extents = f"extents {known[axis.name].extent} and {axis.extent}"
            raise DeclarationError(f"compute {name} has two axes named {axis.name!r} ({extents}), one of the output and one that is reduced; rename one")


def _check_reductions(name: str, body: Expr) -> None:
    inner = body.source if isinstance(body, Reduce) else body
    for node in walk(inner):
        if isinstance(node, Reduce):
            raise DeclarationError(
                f"compute {name} uses te.{node.combiner}(..., axis=...) inside another expression; declare the reduction as a compute of its own and read it"
            )


def _check_axes(name: str, body: Expr, axes: tuple[Axis, ...]) -> None:
    known = {id(axis) for axis in axes}
    for node in walk(body):
        if isinstance(node, Axis) and id(node) not in known:
            hint = "wrap the expression in te.sum(..., axis=...)" if node.kind == "reduce" else "use the parameters of this compute's function"
            raise DeclarationError(f"compute {name} uses axis {node.name}, which is not one of its own; {hint}")


def _check_reads(name: str, body: Expr) -> None:
    """Each read once where it is below a condition, and once where it is not."""
    met: set[tuple[int, bool]] = set()
    stack = [(body, False)]
    while stack:
        expr, guarded = stack.pop()
        if (id(expr), guarded) in met:
            continue
        met.add((id(expr), guarded))
        if isinstance(expr, Read):
            _check_read(name, expr, guarded)
        below = guarded or isinstance(expr, Select) or (isinstance(expr, Binary) and expr.op in ("and", "or"))
        never = _never_taken(expr)
        stack += [(child, below if k else guarded) for k, child in reversed(list(enumerate(expr.children))) if k != never]


def _never_taken(expr: Expr) -> int | None:
    """The operand that a condition always excludes."""
    if isinstance(expr, Select):
        holds = decided(expr.condition)
        return None if holds is None else 2 if holds else 1
    if isinstance(expr, Binary) and expr.op in LOGIC:
        return 1 if decided(expr.left) is (expr.op == "or") else None
    return None


def _check_read(name: str, read: Read, guarded: bool) -> None:
    for dimension, (index, extent) in enumerate(zip(read.indices, read.tensor.shape, strict=True)):
        found = proven_outside(index, extent, guarded)
        if found is None:
            continue
        inside = "guard the read with te.if_then_else, pad the tensor, or mend the index"
        cure = "its condition does not exclude that: mend one of the two" if guarded else inside
        raise DeclarationError(
            f"compute {name} reads tensor {read.tensor.name} of shape {read.tensor.shape} in dimension {dimension} at `{index}`, which takes values "
            f"{found[0]}..{found[1]} while the extent is {extent}; {cure}"
        )
