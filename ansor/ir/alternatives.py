"""Writes out unrolled loops that choose another value in each iteration, as those around small constant matrices do.

    unrolled for e in 16:  y[e] = select(e % 4 == 0, a[e / 4], select(e % 4 == 1, b[e / 4], select(e % 4 == 2, c[e / 4], d[e / 4])))
    unrolled for e in 4:   y[4 e] = a[e];  y[4 e + 1] = b[e];  y[4 e + 2] = c[e];  y[4 e + 3] = d[e]

The text is as long, and easier to read. A compiler unrolls a quarter of the code: otherwise it copies all alternatives, and chooses afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ansor.ir.linear import Linear, Opaque, Remainder, Var, of, substituted, variables
from ansor.ir.loops import Access, For, IndexValue, Node, Store, stores
from ansor.ir.simplify import index_of, simplified_index
from ansor.te.expr import Binary, Expr, Select
from ansor.te.fold import fold, with_operands


@dataclass(frozen=True, eq=False)
class Alternatives:
    """A value that depends on `var % period`: `values` by remainder, and `otherwise`."""

    period: int
    values: Mapping[int, Expr]
    otherwise: Expr


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
    outer = Var(f"{loop.var.name}_by_{count}", rounds)
    start = of(outer) * count if rounds > 1 else Linear()
    body = _nodes(tuple(node for number in range(count) for node in _iteration(loop.body, loop.var, start + number)))
    if rounds == 1:
        yield from body
    else:
        yield replace(loop, var=outer, body=body)


def _period(loop: For) -> int:
    """Iterations after which the loop's values take the same alternatives again; 1 if some value has fewer alternatives, as the text would get longer."""
    if loop.locals:
        return 1
    periods = {_store_period(store, loop.var) for _, store in stores(loop.body)}
    return periods.pop() if len(periods) == 1 else 1


def _store_period(store: Store, var: Var) -> int:
    if store.combiner is not None or any(var in variables(guard.value) for guard in store.guards):
        return 1
    found = _alternatives(store.value, var)
    return found.period if found is not None and len(found.values) + 1 >= found.period else 1


def _alternatives(value: Expr, var: Var) -> Alternatives | None:
    """None if a value does not choose by `var`, or by several remainders of it."""
    values: dict[int, Expr] = {}
    period = 0
    while isinstance(value, Select):
        found = _remainder(value.condition, var)
        if found is None or period not in (0, found[0]):
            break
        period = found[0]
        values.setdefault(found[1], value.then)
        value = value.otherwise
    return Alternatives(period, values, value) if values else None


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


def _iteration(nodes: tuple[Node, ...], var: Var, place: Linear) -> tuple[Node, ...]:
    """The body of a loop at `place`."""
    return tuple(_store(node, var, place) if isinstance(node, Store) else replace(node, body=_iteration(node.body, var, place)) for node in nodes)


def _store(store: Store, var: Var, place: Linear) -> Store:
    values = {var: place}

    def index(linear: Linear) -> Linear:
        if not any(atom is var or not isinstance(atom, Var) for atom, _ in linear.terms):
            return linear
        return simplified_index(substituted(linear, values, lambda opaque: of(Opaque(value(opaque.value)))))

    def visit(node: Expr, operands: tuple[Expr, ...]) -> Expr:
        if isinstance(node, Access):
            return Access(node.buffer, tuple(map(index, node.index)), node.dtype)
        return IndexValue(index(node.value), node.dtype) if isinstance(node, IndexValue) else with_operands(node, operands)

    def value(expr: Expr) -> Expr:
        return fold(expr, visit)

    found = _alternatives(store.value, var)
    assert found is not None
    chosen = found.values.get(int(place.const) % found.period, found.otherwise)
    return replace(store, index=tuple(map(index, store.index)), value=value(chosen))
