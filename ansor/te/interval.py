"""Which values an index expression can take."""

from __future__ import annotations

from ansor.te.expr import LOGIC, Axis, Binary, Const, Expr, Not, is_float, whole
from ansor.te.fold import fold

Interval = tuple[int, int]


def interval(expr: Expr) -> Interval | None:
    """Least and greatest value, both inclusive; None when it depends on data. A superset of the values really taken."""
    return fold(expr, _interval)


def _interval(expr: Expr, operands: tuple[Interval | None, ...]) -> Interval | None:
    if isinstance(expr, Const):
        return None if is_float(expr.dtype) else (whole(expr.value), whole(expr.value))
    if isinstance(expr, Axis):
        return (expr.start, expr.start + expr.extent - 1)
    if not isinstance(expr, Binary) or operands[0] is None or operands[1] is None:
        return None
    if expr.op in ("shl", "shr", "bitand"):
        plain = arithmetic_form(expr)
        return None if plain is expr else _combined(plain.op, operands[0], (int(plain.right.value),) * 2) if isinstance(plain.right, Const) else None
    return _combined(expr.op, operands[0], operands[1])


def arithmetic_form(expr: Binary) -> Binary:
    """A shift by a constant, or a mask of the lowest bits, as a product, quotient or remainder; anything else unchanged."""
    if not isinstance(expr.right, Const) or expr.op not in ("shl", "shr", "bitand"):
        return expr
    count = int(expr.right.value)
    if expr.op == "bitand":
        return Binary("floormod", expr.left, Const(count + 1, expr.dtype), expr.dtype) if count > 0 and count & (count + 1) == 0 else expr
    return Binary("mul" if expr.op == "shl" else "floordiv", expr.left, Const(2**count, expr.dtype), expr.dtype)


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


def _is_exact(expr: Expr) -> bool:
    """True when the ends of the interval are really taken: sums and constant multiples of distinct axes."""
    met: set[int] = set()
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Const):
            continue
        if id(node) in met or not isinstance(node, Axis | Binary):
            return False
        met.add(id(node))
        if isinstance(node, Axis):
            continue
        scaled = node.op == "mul" and (isinstance(node.left, Const) or isinstance(node.right, Const))
        if not (scaled or node.op in ("add", "sub") or (node.op == "floordiv" and isinstance(node.right, Const))):
            return False
        stack += node.children
    return True


def proven_outside(index: Expr, extent: int, guarded: bool) -> Interval | None:
    """The values of `index` if some of them are certainly outside 0..extent-1, else None.

    A guarded read (below a condition) is refused only when every value is outside, since the condition may exclude the others. A constant index is left to its
    guard: it may sit on a branch that is never taken (concatenation of slices).
    """
    values = interval(index)
    if values is None:
        return None
    if values[1] < 0 or values[0] >= extent:
        return None if guarded and isinstance(index, Const) else values
    if guarded or (values[0] >= 0 and values[1] < extent):
        return None
    return values if _is_exact(index) else None


def decided(condition: Expr) -> bool | None:
    """Whether a condition on loops always (True) or never (False) holds; None when it may vary."""
    return fold(condition, _decided)


def _decided(expr: Expr, operands: tuple[bool | None, ...]) -> bool | None:
    if isinstance(expr, Const):
        return bool(expr.value)
    if isinstance(expr, Not):
        return None if operands[0] is None else not operands[0]
    if not isinstance(expr, Binary):
        return None
    if expr.op in LOGIC:
        final = expr.op == "or"
        return final if final in operands else None if None in operands else not final
    if expr.op not in ("lt", "le", "gt", "ge"):
        return None
    a, b = interval(expr.left), interval(expr.right)
    if a is None or b is None:
        return None
    if expr.op in ("gt", "ge"):
        a, b = b, a
    strict = expr.op in ("lt", "gt")
    if a[1] < b[0] or (not strict and a[1] == b[0]):
        return True
    return False if a[0] > b[1] or (strict and a[0] == b[1]) else None
