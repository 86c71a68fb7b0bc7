"""Counts the operations of each kind in one execution of a statement."""

from __future__ import annotations

from ansor.cost_model.copies import uses
from ansor.cost_model.index_division import index_divisions
from ansor.cost_model.nest import Nest
from ansor.ir.columns import Flag, Int, Row, choose, larger, magnitude, row
from ansor.ir.linear import Linear, Opaque, Quotient, Remainder, Var
from ansor.ir.loops import Access, IndexValue, Store
from ansor.te.expr import BITWISE, COMPARISONS, LOGIC, Binary, Call, Cast, Expr, Not, Select, is_float
from ansor.te.fold import postorder, walk
from ansor.te.scalar import FUNCTIONS, ROUNDING, small_power

Counts = dict[str, Row]
"""Column name -> operations per iteration."""

LONG_FUNCTIONS = frozenset({"exp", "log", "log2", "sqrt", "rsqrt", "tanh", "sigmoid", "erf", "sin", "cos", "pow", *(set(FUNCTIONS) - {"fabs", *ROUNDING})})

_KINDS = {"add": "addsub", "sub": "addsub", "mul": "mul", "min": "cmp", "max": "cmp", **dict.fromkeys(BITWISE, "addsub")}
_COMBINERS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}


def operation_counts(nest: Nest) -> tuple[Counts, float]:
    """Operations per iteration, and how many of them are arithmetic on data (a fused multiply-add counts as two). What only some copies of an unrolled body
    compute counts as their share."""
    tally = _Tally(nest)
    store = nest.store
    if store.combiner is not None:
        tally.arithmetic(_COMBINERS[store.combiner], store.buffer.dtype, (store.value,))
    tally.value(store.value)
    for index in store.index:
        tally.opaque(index)
    tally.add("int_divmod", index_divisions(nest) / nest.iterations)
    tally.conditions(store)
    return tally.counts, float(tally.data)


class _Tally:
    """share: of the copies of an unrolled body, those that compute what is counted now."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.counts: Counts = {}
        self.data = 0.0
        self.share = 1.0

    def add(self, column: str, amount: Row) -> None:
        self.counts[column] = self.counts.get(column, 0.0) + (amount if self.share == 1.0 else amount * self.share)

    def on_data(self, count: int) -> None:
        self.data += count * self.share

    def arithmetic(self, op: str, dtype: str, operands: tuple[Expr, ...]) -> None:
        """One operation on data; an addition is fused with one multiplication among its operands."""
        prefix = "float" if is_float(dtype) else "int"
        self.on_data(1)
        if op in ("add", "sub") and any(isinstance(operand, Binary) and operand.op == "mul" for operand in operands):
            self.add(f"{prefix}_mad", 1.0)
            self.add(f"{prefix}_mul", -1.0)  # that multiplication is counted when its turn comes
            return
        self.add(f"{prefix}_{_KINDS.get(op, 'divmod')}", 1.0)

    def value(self, expr: Expr) -> None:
        """Count everything below `expr`."""
        computed, around = uses(expr, self.nest.path), self.share
        for node in postorder(expr) if computed else walk(expr):
            self.share = around * (computed.get(id(node), 0.0) if computed else 1.0)
            if isinstance(node, IndexValue):
                self.index_arithmetic(node.value)
            elif isinstance(node, Access):
                for index in node.index:
                    self.opaque(index)
            else:
                self.node(node)
        self.share = around

    def node(self, expr: Expr) -> None:
        """Count one node of a value."""
        if isinstance(expr, Select):
            self.add("select_op", 1.0)
        elif isinstance(expr, Not) or (isinstance(expr, Binary) and expr.op in LOGIC):
            self.add("bool_op", 1.0)
        elif isinstance(expr, Binary) and expr.op in COMPARISONS:
            self.add("float_cmp" if is_float(expr.left.dtype) else "int_cmp", 1.0)
        elif isinstance(expr, Binary):
            self.arithmetic(expr.op, expr.dtype, expr.children)
        elif isinstance(expr, Call) and small_power(expr):
            products = (small_power(expr) + 1) // 2
            self.on_data(products)
            self.add("float_mul", products)
        elif isinstance(expr, Call):
            self.on_data(1)
            self.add("float_mathfunc" if expr.name in LONG_FUNCTIONS else "float_otherfunc", 1.0)
        elif isinstance(expr, Cast):
            floating = is_float(expr.dtype) or is_float(expr.value.dtype)
            self.add("float_otherfunc" if floating else "int_otherfunc", 1.0)

    def index_arithmetic(self, linear: Linear) -> None:
        """An index used as a value: multiplications by numbers other than 1, additions, divisions. Loops that are not real are 0 and free."""
        terms = _count(linear.const != 0)
        for atom, coefficient in linear.terms:
            if isinstance(atom, Var) and atom not in self.nest.level:
                continue
            real: Flag = self.nest.real[self.nest.level[atom]] if isinstance(atom, Var) else True
            self.add("int_mul", row((magnitude(coefficient) > 1) & real))
            terms = terms + _count((coefficient != 0) & real)
        self.add("int_addsub", row(larger(terms, 1) - 1))
        self.opaque(linear)

    def opaque(self, linear: Linear) -> None:
        """Operations of the data-dependent parts of an index."""
        for atom, _ in linear.terms:
            if isinstance(atom, Opaque):
                self.value(atom.value)
            elif isinstance(atom, Quotient | Remainder):
                self.opaque(atom.value)

    def conditions(self, store: Store) -> None:
        """Count one comparison if any condition is needed."""
        needed: Flag = False
        for guard in store.guards:
            needed = needed | guard.needed
        if store.guards:
            self.add("int_cmp", row(needed))


def _count(flag: Flag) -> Int:
    return choose(flag, 1, 0)
