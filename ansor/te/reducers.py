"""The four reductions, with TVM's `where=` and `init=`, and user functions that equal one of them.

    total = te.comm_reducer(lambda x, y: x + y, lambda t: te.const(0, t))
    te.compute((n,), lambda i: total(a[i, k], axis=k))

A function of pairs that keeps the pair with the greater or smaller value is an argmax or argmin; `te.compute` makes its stages.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ansor.errors import DeclarationError
from ansor.te.declaration import Extreme
from ansor.te.dtypes import INTEGER_LIMITS, INTEGERS_UP_TO
from ansor.te.expr import Axis, Binary, Cast, Const, Expr, Not, Number, Operand, Reduce, Select, as_expr, binary, identity_of, is_float, unified
from ansor.te.fold import fold
from ansor.te.tensor import Read, placeholder

Axes: TypeAlias = Axis | Sequence[Axis]
Combine = Callable[..., object]
COMBINERS = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}
_STEPS = {combiner: op for op, combiner in COMBINERS.items()}


def reduction(name: str, source: Expr, axis: Axes, where: Operand | None = None, init: Operand | None = None) -> Reduce:
    """`source` combined over reduce axes. where: combine only the places where it holds. init: the start value, instead of the neutral element."""
    axes = _checked(name, source, axis)
    if where is not None:
        source = _chosen(as_expr(where, "bool"), source, Const(identity_of(name, source.dtype), source.dtype))
    if init is not None:
        first: Expr = Const(True, "bool")
        for one in axes:
            first = binary("and", first, binary("eq", one, one.start))
        source = _chosen(first, binary(_STEPS[name], init, source), source)
    return Reduce(name, source, axes, source.dtype)


def _chosen(condition: Expr, then: Operand, otherwise: Operand) -> Expr:
    a, b = unified("choice", then, otherwise)
    return Select(condition, a, b, a.dtype)


def _checked(name: str, source: Expr, axis: Axes) -> tuple[Axis, ...]:
    axes = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    if not axes:
        raise DeclarationError(f"asked for te.{name} over no axis; give axis=te.reduce_axis((0, n))")
    for one in axes:
        if not isinstance(one, Axis) or one.kind != "reduce":
            raise DeclarationError(f"asked for te.{name} over {one}, which is not a reduce axis; make one with te.reduce_axis((0, n)), and index with it")
    if len({id(one) for one in axes}) != len(axes):
        raise DeclarationError(f"asked for te.{name} over axes {[one.name for one in axes]}, one of them twice; make a te.reduce_axis for each")
    if source.dtype == "bool":
        names = ", ".join(one.name for one in axes)
        raise DeclarationError(f"asked for te.{name} of the condition `{source}` over {names}; convert it with .astype('int32')")
    return axes


def comm_reducer(fcombine: Combine, fidentity: Combine, name: str = "reduce") -> Callable[..., object]:
    """A reduction by `fcombine(x, y)`, starting from `fidentity(dtype)`: a function of (expression, axis, where, init), or of several expressions.

    `fcombine` must be a sum, product, maximum or minimum. It may also take and return tuples: either each member is one of these, or they are pairs
    chosen by comparing one member (argmax, argmin). Raises DeclarationError for others.
    """

    def reducer(expr: object, axis: object, where: Operand | None = None, init: object = None, *more: Operand) -> object:
        if isinstance(axis, Axis) or (isinstance(axis, Sequence) and axis and all(isinstance(one, Axis) for one in axis)):
            if isinstance(expr, tuple | list):
                return _of_tuple(fcombine, fidentity, name, [as_expr(one) for one in expr], axis, where, init)
            return _of_one(fcombine, fidentity, name, as_expr(expr), axis, where, init)  # type: ignore[arg-type]  # as_expr refuses others
        result = fcombine(expr, axis)
        for one in (where, init, *more):
            result = result if one is None else fcombine(result, one)
        return result

    reducer.__name__ = reducer.__qualname__ = name
    return reducer


def _of_one(fcombine: Combine, fidentity: Combine, name: str, source: Expr, axis: Axes, where: Operand | None, init: object) -> Reduce:
    x, y = _operands("x", source.dtype), _operands("y", source.dtype)
    found = fcombine(x, y)
    combiner = _combiner(found, x, y) if isinstance(found, Expr) else None
    if combiner is None:
        raise DeclarationError(_others(name, found))
    return reduction(combiner, source, axis, where, _start(combiner, source.dtype, fidentity(source.dtype)) if init is None else init)  # type: ignore[arg-type]  # it refuses what is none


def _start(combiner: str, dtype: str, given: object) -> Expr | None:
    """The start value if `given` is not neutral. TVM's least float is finite, ours infinite, which makes no difference to a maximum of finite numbers."""
    start = as_expr(given, dtype)  # type: ignore[arg-type]  # it refuses what is none
    if not isinstance(start, Const):
        return start
    neutral = identity_of(combiner, dtype)
    beyond = combiner in ("max", "min") and is_float(dtype) and abs(start.value) >= (65504 if dtype == "float16" else 3.4e38)
    return None if start.value == neutral or beyond else start


def _of_tuple(fcombine: Combine, fidentity: Combine, name: str, sources: Sequence[Expr], axis: Axes, where: Operand | None, init: object) -> object:
    x, y = ([_operands(f"{side}{k}", one.dtype) for k, one in enumerate(sources)] for side in "xy")
    found, start = fcombine(tuple(x), tuple(y)), fidentity(*(one.dtype for one in sources))
    if not isinstance(found, tuple | list) or not isinstance(start, tuple | list) or not len(found) == len(start) == len(sources):
        raise DeclarationError(f"asked for {name} of {len(sources)} expressions; its functions have to give as many, in a tuple")
    results = [as_expr(one) for one in found]
    each = [_combiner(result, a, b) for result, a, b in zip(results, x, y, strict=True)]
    starts = init if isinstance(init, tuple | list) else [None] * len(sources)
    if all(each):
        return tuple(
            reduction(str(combiner), source, axis, where, _start(str(combiner), source.dtype, neutral) if first is None else first)
            for combiner, source, neutral, first in zip(each, sources, start, starts, strict=True)
        )
    choice = _choice(results, x, y) if len(sources) == 2 else None
    if choice is None or init is not None:
        raise DeclarationError(_others(name, ", ".join(map(str, results))))
    at, extreme, last, lowest = choice
    axes, place = _checked(name, sources[at], axis), sources[1 - at]
    if lowest and not _ascends(place, axes):
        raise DeclarationError(
            f"asked for {name}, which keeps of equal values that with the {'greater' if last else 'smaller'} `{place}`; this is supported for sums of axes "
            "that grow at each step of the reduction: pass such a sum, and read the rest by its result"
        )
    return Extreme(extreme, at, last, (sources[0], sources[1]), axes, None if where is None else as_expr(where, "bool"), as_expr(start[1 - at]))


def _others(name: str, found: object) -> str:
    return (
        f"asked for the reduction {name} by `{found}`; there are sums, products, maxima and minima, tuples of these, and pairs chosen by comparing one "
        "member (argmax, argmin): write it with those, or with one stage for each step"
    )


def _operands(name: str, dtype: str) -> Expr:
    """A variable that stands for any value."""
    return placeholder((), dtype, name)[()]


def _combiner(found: Expr, x: Expr, y: Expr) -> str | None:
    """The reduction that an expression is a step of. Choices by comparison are tried with every order of two values."""
    if isinstance(found, Binary) and {id(found.left), id(found.right)} == {id(x), id(y)}:
        return COMBINERS.get(found.op)
    for name, wanted in (("max", max), ("min", min)):
        cases = (_value(found, {id(x): a, id(y): b}) == wanted(a, b) for a, b in itertools.product(range(2), repeat=2))
        if _chooses_only(found, (x, y)) and all(cases):
            return name
    return None


def _choice(found: Sequence[Expr], x: Sequence[Expr], y: Sequence[Expr]) -> tuple[int, str, bool, bool] | None:
    """(the compared member, max or min, last, lowest), the last two as in `_kept`; None for anything else.

    A function that only compares and chooses depends only on the order of values, so all orders of two pairs are tried.
    """
    if not all(_chooses_only(one, (*x, *y)) for one in found):
        return None
    orders = [*itertools.product(range(2), repeat=4)]
    for at, extreme, last, lowest in itertools.product((1, 0), ("max", "min"), (False, True), (False, True)):
        if all(_pair(found, x, y, order) == _kept(order, at, extreme, last, lowest) for order in orders):
            return at, extreme, last, lowest
    return None


def _pair(found: Sequence[Expr], x: Sequence[Expr], y: Sequence[Expr], order: tuple[int, ...]) -> tuple[Number, ...]:
    values = {id(variable): value for variable, value in zip((*x, *y), order, strict=True)}
    return tuple(_value(one, values) for one in found)


def _kept(order: tuple[int, ...], at: int, extreme: str, last: bool, lowest: bool) -> tuple[int, ...]:
    """The pair that is kept. last: of pairs with equal values, keep the later. lowest: keep the one with the lower other member (the higher, if `last`)."""
    left, right = order[:2], order[2:]
    if left[at] != right[at]:
        return left if (left[at] > right[at]) == (extreme == "max") else right
    if lowest:
        return left if (left[1 - at] > right[1 - at]) == last else right
    return right if last else left


def _ascends(place: Expr, axes: Sequence[Axis]) -> bool:
    """Whether a place is a sum of axes that grows at each step of a reduction over `axes`."""
    steps, reach = _steps(place), 0
    for axis in reversed(axes):
        step = 0 if steps is None else steps.get(id(axis), 0)
        if step <= reach:
            return False
        reach += step * (axis.extent - 1)
    return True


def _steps(place: Expr) -> dict[int, int] | None:
    """The factor of each axis in a sum, by its id, and under 0 the constant; None for anything else, and for values that some dtype on the way cannot hold."""
    axes: dict[int, Axis] = {}

    def visit(node: Expr, inner: tuple[dict[int, int] | None, ...]) -> dict[int, int] | None:
        if isinstance(node, Axis):
            axes[id(node)] = node
            return {id(node): 1}
        found = _combined(node, inner)
        return found if found is not None and _holds(node.dtype, found, axes) else None

    return fold(place, visit)


def _combined(node: Expr, inner: tuple[dict[int, int] | None, ...]) -> dict[int, int] | None:
    """The sum of a node that is no axis, from those of its operands."""
    if isinstance(node, Const):
        return {0: int(node.value)} if int(node.value) == node.value else None
    if isinstance(node, Cast):
        return inner[0]
    if not isinstance(node, Binary) or inner[0] is None or inner[1] is None:
        return None
    left, right = inner[0], inner[1]
    if node.op in ("add", "sub"):
        sign = 1 if node.op == "add" else -1
        return {key: left.get(key, 0) + sign * right.get(key, 0) for key in {*left, *right}}
    many, one = (left, right) if set(right) == {0} else (right, left)
    return {key: factor * one[0] for key, factor in many.items()} if node.op == "mul" and set(one) == {0} else None


def _holds(dtype: str, steps: Mapping[int, int], axes: Mapping[int, Axis]) -> bool:
    """Whether a dtype holds all values of a sum exactly: an integer that wraps does not grow, and a float may round two values to one."""
    least, greatest = INTEGER_LIMITS[dtype] if dtype in INTEGER_LIMITS else (-INTEGERS_UP_TO[dtype], INTEGERS_UP_TO[dtype])
    ends = [[factor * end for end in _ends(axes.get(key))] for key, factor in steps.items()]
    return least <= sum(map(min, ends)) and sum(map(max, ends)) <= greatest


def _ends(axis: Axis | None) -> tuple[int, int]:
    """The least and the greatest value of an axis; of the constant's place, 1."""
    return (1, 1) if axis is None else (axis.start, axis.start + axis.extent - 1)


def _chooses_only(expr: Expr, variables: Sequence[Expr]) -> bool:
    allowed = {id(variable) for variable in variables}
    plain = ("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "min", "max")

    def fits(node: Expr, inner: tuple[bool, ...]) -> bool:
        own = id(node) in allowed or isinstance(node, Select | Not) or (isinstance(node, Binary) and node.op in plain)
        return own and (isinstance(node, Read) or all(inner))

    return fold(expr, fits)


def _value(expr: Expr, values: Mapping[int, int]) -> Number:
    def visit(node: Expr, inner: tuple[Number, ...]) -> Number:
        if isinstance(node, Read):
            return values.get(id(node), 0)
        if isinstance(node, Select):
            return inner[1] if inner[0] else inner[2]
        if isinstance(node, Not):
            return not inner[0]
        if not isinstance(node, Binary):
            return 0
        a, b = inner
        return {
            "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "eq": a == b, "ne": a != b, "and": bool(a and b), "or": bool(a or b),
            "min": min(a, b), "max": max(a, b),
        }.get(node.op, 0)  # fmt: skip

    return fold(expr, visit)
