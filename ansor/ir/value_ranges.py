"""Which values an integer expression of a loop nest can take, so that generated code need not handle what cannot happen."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansor.ir.linear import bounds
from ansor.ir.loops import IndexValue, Store
from ansor.te.dtypes import INTEGER_LIMITS
from ansor.te.expr import COMPARISONS, LOGIC, Binary, Cast, Const, Expr, Not, Select, is_float
from ansor.te.fold import postorder
from ansor.te.interval import Interval


@dataclass(frozen=True)
class Ranges:
    """Ranges of the expressions of one program, each worked out once."""

    known: dict[int, tuple[Expr, Interval]] = field(default_factory=dict)  # by id, with the expression kept so that its id stays valid

    def of(self, expr: Expr) -> Interval:
        """Least and greatest value of an integer expression: a superset of the values really taken, within its dtype, in which it wraps."""
        for node in postorder(expr, lambda node: node.children if id(node) not in self.known else ()):
            if id(node) not in self.known:
                self.known[id(node)] = node, _of_node(node, tuple(self.known[id(child)][1] for child in node.children))
        return self.known[id(expr)][1]

    def may_wrap(self, expr: Binary) -> bool:
        """True where a sum, a difference or a product of integers may leave its dtype."""
        found = of_operation(expr.op, self.of(expr.left), self.of(expr.right))
        return found is None or not _within(found, INTEGER_LIMITS[expr.dtype])

    def reduction_may_wrap(self, store: Store) -> bool:
        """True where a reduction of integers may leave its dtype."""
        if store.buffer.dtype not in INTEGER_LIMITS or store.combiner not in ("sum", "prod"):
            return False
        low, high = self.of(store.value)
        length = 1
        for var in store.reduce_vars:
            length *= int(var.extent)
        return store.combiner == "prod" or not _within((min(low * length, 0), max(high * length, 0)), INTEGER_LIMITS[store.buffer.dtype])

    def divides_safely(self, expr: Binary) -> bool:
        """True where a divisor is never 0, nor -1 for the least integer: processors trap on both."""
        low, high = self.of(expr.right)
        if low <= 0 <= high:
            return False
        return not low <= -1 <= high or self.of(expr.left)[0] > INTEGER_LIMITS[expr.dtype][0]


def of_operation(op: str, a: Interval, b: Interval) -> Interval | None:
    """The range of `a op b` before it wraps, None where nothing is known."""
    if op in ("add", "sub"):
        return (a[0] + b[0], a[1] + b[1]) if op == "add" else (a[0] - b[1], a[1] - b[0])
    if op in ("min", "max"):
        choose = min if op == "min" else max
        return choose(a[0], b[0]), choose(a[1], b[1])
    if op == "bitand" and (a[0] >= 0 or b[0] >= 0):
        return 0, min(side[1] for side in (a, b) if side[0] >= 0)
    if op == "mul":
        ends = [x * y for x in a for y in b]
    elif op == "shr" and b[0] >= 0 and b[1] < 64:
        ends = [x >> y for x in a for y in b]
    elif b[0] <= 0:
        return None
    elif op == "floordiv":
        ends = [x // y for x in a for y in b]
    elif op == "truncdiv":
        ends = [abs(x) // y * (1 if x >= 0 else -1) for x in a for y in b]
    elif op == "floormod":
        ends = list(a) if a[0] >= 0 and a[1] < b[0] else [0, b[1] - 1]
    elif op == "truncmod":
        ends = [max(a[0], 1 - b[1]) if a[0] < 0 else 0, min(a[1], b[1] - 1) if a[1] > 0 else 0]
    else:
        return None
    return min(ends), max(ends)


def _of_node(expr: Expr, operands: tuple[Interval, ...]) -> Interval:
    limits = INTEGER_LIMITS.get(expr.dtype, INTEGER_LIMITS["int64"])
    found = None if is_float(expr.dtype) else _known(expr, operands)
    return found if found is not None and _within(found, limits) else limits


def _known(expr: Expr, operands: tuple[Interval, ...]) -> Interval | None:
    if isinstance(expr, Const):
        return int(expr.value), int(expr.value)
    if isinstance(expr, IndexValue):
        found = bounds(expr.value)
        return None if found is None else (int(found[0]), int(found[1]))
    if isinstance(expr, Not) or (isinstance(expr, Binary) and expr.op in (*COMPARISONS, *LOGIC)):
        return 0, 1
    if isinstance(expr, Cast):
        return None if is_float(expr.value.dtype) else operands[0]
    if isinstance(expr, Select):
        return min(operands[1][0], operands[2][0]), max(operands[1][1], operands[2][1])
    return of_operation(expr.op, *operands) if isinstance(expr, Binary) else None


def _within(inner: Interval, outer: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
