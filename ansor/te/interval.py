"""Which values an index expression can take."""

from __future__ import annotations

from ansor.te.expr import Axis, Binary, Const, Expr

Interval = tuple[int, int]


def interval(expr: Expr) -> Interval | None:
    """Least and greatest value, both inclusive; None when it depends on data. A superset of the values really taken."""
    if isinstance(expr, Const):
        return (int(expr.value), int(expr.value))
    if isinstance(expr, Axis):
        return (expr.start, expr.start + expr.extent - 1)
    if not isinstance(expr, Binary):
        return None
    a, b = interval(expr.left), interval(expr.right)
    if a is None or b is None:
        return None
    return _combined(expr.op, a, b)


def _combined(op: str, a: Interval, b: Interval) -> Interval | None:
    if op == "add":
        return (a[0] + b[0], a[1] + b[1])
    if op == "sub":
        return (a[0] - b[1], a[1] - b[0])
    if op == "mul":
        products = [x * y for x in a for y in b]
        return (min(products), max(products))
    if op == "min":
        return (min(a[0], b[0]), min(a[1], b[1]))
    if op == "max":
        return (max(a[0], b[0]), max(a[1], b[1]))
    if b[0] != b[1] or b[0] <= 0:
        return None
    if op == "floordiv":
        return (a[0] // b[0], a[1] // b[0])
    if op == "floormod":
        return (a[0] % b[0], a[1] % b[0]) if a[0] // b[0] == a[1] // b[0] else (0, b[0] - 1)
    return None


def _is_exact(expr: Expr, seen: set[int]) -> bool:
    """True when the ends of the interval are really taken: sums and constant multiples of distinct axes."""
    if isinstance(expr, Const):
        return True
    if isinstance(expr, Axis):
        fresh = id(expr) not in seen
        seen.add(id(expr))
        return fresh
    if not isinstance(expr, Binary):
        return False
    if expr.op in ("floordiv",) and isinstance(expr.right, Const):
        return _is_exact(expr.left, seen)
    if expr.op == "mul" and not (isinstance(expr.left, Const) or isinstance(expr.right, Const)):
        return False
    return expr.op in ("add", "sub", "mul") and _is_exact(expr.left, seen) and _is_exact(expr.right, seen)


def proven_outside(index: Expr, extent: int, guarded: bool) -> Interval | None:
    """The values of `index` if some of them certainly are outside 0..extent-1, else None.

    A guarded read (below a condition) is refused only when every value is outside, since the condition may exclude the others.
    """
    values = interval(index)
    if values is None:
        return None
    if values[1] < 0 or values[0] >= extent:
        return None if guarded and _is_dead_guard(index) else values
    if guarded or (values[0] >= 0 and values[1] < extent):
        return None
    return values if _is_exact(index, set()) else None


def _is_dead_guard(index: Expr) -> bool:
    """A guarded constant index may sit on a branch that is never taken (concatenation of slices): leave it to the guard."""
    return isinstance(index, Const)
