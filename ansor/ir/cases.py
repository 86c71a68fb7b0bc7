"""Writes out unrolled loops that take another case in each iteration, as those around small constant matrices do.

    unrolled for e in 16:  y[e] = select(e % 4 == 0, a[e / 4], select(e % 4 == 1, b[e / 4], select(e % 4 == 2, c[e / 4], d[e / 4])))
    unrolled for e in 4:   y[4 e] = a[e];  y[4 e + 1] = b[e];  y[4 e + 2] = c[e];  y[4 e + 3] = d[e]

The text is as long, and easier to read. A compiler unrolls a quarter of the code: otherwise it copies all cases, and chooses afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ansor.ir.linear import Linear, Opaque, Remainder, Var, is_opaque, of, substituted, variables
from ansor.ir.loops import Access, For, IndexValue, Node, Store, stores
from ansor.ir.simplify import index_of, simplified_index
from ansor.te.expr import Binary, Expr, Select
from ansor.te.fold import fold, with_operands


@dataclass(frozen=True, eq=False)
class Cases:
    """A value that depends on `var % period`: `values` by remainder, and `otherwise`."""

    period: int
    values: Mapping[int, Expr]
    otherwise: Expr

    def at(self, iteration: int) -> Expr:
        """The value in an iteration."""
        return self.values.get(iteration % self.period, self.otherwise)


def written_out(nest: Node) -> Node:
    """A nest of a program; every extent and coefficient has to be an int. Its outermost loop stays."""
    return replace(nest, body=_nodes(nest.body)) if isinstance(nest, For) else nest


def _nodes(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    found: list[Node] = []
    for node in nodes:
        found += [node] if isinstance(node, Store) else _loop(node)
    return tuple(found)


def _loop(loop: For) -> Iterator[Node]:
    count = _period(loop) if loop.unrolled else 1
    if count == 1:
        yield replace(loop, body=_nodes(loop.body))
        return
    rounds = int(loop.var.extent) // count
    outer = Var(loop.var.name, rounds)  # nothing else has that name
    start = of(outer) * count if rounds > 1 else Linear()
    body = _nodes(tuple(node for number in range(count) for node in _iteration(loop.body, _Iteration(loop.var, start + number))))
    if rounds == 1:
        yield from body
    else:
        yield replace(loop, var=outer, body=body)


def _period(loop: For) -> int:
    """Iterations after which the loop's values take the same cases again; 1 if some value has fewer cases, as the text would get longer."""
    if loop.locals:
        return 1
    periods = {_store_period(store, loop.var) for _, store in stores(loop.body)}
    return periods.pop() if len(periods) == 1 else 1


def _store_period(store: Store, var: Var) -> int:
    if store.combiner is not None or any(var in variables(guard.value) or any(is_opaque(atom) for atom, _ in guard.value.terms) for guard in store.guards):
        return 1
    found = _cases(store.value, var)
    return found.period if found is not None and len(found.values) + 1 >= found.period else 1


def _cases(value: Expr, var: Var) -> Cases | None:
    """The cases of a value up to a test of another remainder; None if it does not begin with a test of `var`."""
    values: dict[int, Expr] = {}
    period = 0
    while isinstance(value, Select):
        found = _remainder(value.condition, var)
        if found is None or period not in (0, found[0]):
            break
        period = found[0]
        values.setdefault(found[1], value.then)
        value = value.otherwise
    return Cases(period, values, value) if values else None


def _remainder(condition: Expr, var: Var) -> tuple[int, int] | None:
    """The period and the number of `var % period == number`, or of `var == number`; None for other conditions."""
    if not isinstance(condition, Binary) or condition.op != "eq":
        return None
    left, right = index_of(condition.left), index_of(condition.right)
    if left is None or right is None or right.terms or len(left.terms) != 1 or left.const != 0 or left.terms[0][1] != 1:
        return None
    atom, extent, number = left.terms[0][0], int(var.extent), int(right.const)
    if atom is var:
        return extent, number
    if not isinstance(atom, Remainder) or extent % int(atom.divisor) or not _is(atom.value, var):
        return None
    return int(atom.divisor), number


def _is(linear: Linear, var: Var) -> bool:
    return linear.const == 0 and len(linear.terms) == 1 and linear.terms[0][0] is var and linear.terms[0][1] == 1


# one iteration --------------------------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Iteration:
    """An iteration of a loop: its variable is at `place`."""

    var: Var
    place: Linear

    def store(self, store: Store) -> Store:
        found = _cases(store.value, self.var)
        value = store.value if found is None else found.at(int(self.place.const))
        return replace(store, index=tuple(map(self.index, store.index)), value=self.value(value))

    def value(self, expr: Expr) -> Expr:
        return fold(expr, self.node)

    def node(self, node: Expr, operands: tuple[Expr, ...]) -> Expr:
        if isinstance(node, Access):
            return Access(node.buffer, tuple(map(self.index, node.index)), node.dtype)
        return IndexValue(self.index(node.value), node.dtype) if isinstance(node, IndexValue) else with_operands(node, operands)

    def index(self, linear: Linear) -> Linear:
        if all(isinstance(atom, Var) and atom is not self.var for atom, _ in linear.terms):
            return linear
        return simplified_index(substituted(linear, {self.var: self.place}, lambda opaque: of(Opaque(self.value(opaque.value)))))


def _iteration(nodes: tuple[Node, ...], at: _Iteration) -> tuple[Node, ...]:
    """The body of a loop in an iteration."""
    return tuple(at.store(node) if isinstance(node, Store) else replace(node, body=_iteration(node.body, at)) for node in nodes)
