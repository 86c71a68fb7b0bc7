"""Removes from the loop nest of one program what only a population needs: loops of extent 1, zero terms, conditions that always hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from ansor.ir.columns import Int
from ansor.ir.linear import Atom, Linear, Opaque, Quotient, Remainder, Var, bounds, is_opaque, of
from ansor.ir.loops import Access, Buffer, For, Guard, IndexValue, Loops, Node, Store
from ansor.te.expr import Binary, Const, Expr, Select
from ansor.te.fold import fold, with_operands


def simplified(loops: Loops) -> Loops:
    """The same program, simplified; every extent and coefficient has to be an int."""
    return joined(loops, map(simplified_nest, loops.body))


@dataclass(frozen=True, eq=False)
class SimplifiedNest:
    """nodes: what is left of a nest; kept: its tiles that live as long as the program, since no loop is left around them."""

    nodes: tuple[Node, ...]
    kept: tuple[Buffer, ...] = ()


def simplified_nest(node: Node) -> SimplifiedNest:
    """One nest of a program."""
    nodes, loose = _Simplifier({}).nodes((node,))
    kept = {buffer: replace(buffer, scope="workspace" if buffer.scope == "local" else buffer.scope) for buffer in loose}
    return SimplifiedNest(_Simplifier(kept).nodes(nodes)[0] if kept else nodes, tuple(kept.values()))


def joined(loops: Loops, nests: Iterable[SimplifiedNest]) -> Loops:
    """The program with its nests simplified."""
    parts = tuple(nests)
    kept = tuple(buffer for part in parts for buffer in part.kept)
    return replace(loops, body=tuple(node for part in parts for node in part.nodes), intermediates=(*loops.intermediates, *kept))


def simplified_index(linear: Linear) -> Linear:
    """Zero terms dropped, variables of extent 1 replaced by 0, divisions folded where the range allows."""
    if all(isinstance(atom, Var) and coefficient and atom.extent != 1 for atom, coefficient in linear.terms):
        return linear  # most sums are as simple as they can be
    result = Linear((), linear.const)
    for atom, coefficient in linear.terms:
        if isinstance(coefficient, int) and coefficient == 0:
            continue
        result = result + _atom(atom) * coefficient
    return Linear(tuple((atom, c) for atom, c in result.terms if not (isinstance(c, int) and c == 0)), result.const)


def _atom(atom: Atom) -> Linear:
    if isinstance(atom, Var):
        return Linear() if atom.extent == 1 else of(atom)
    if isinstance(atom, Opaque):
        return of(atom)
    return _division(simplified_index(atom.value), int(atom.divisor), isinstance(atom, Quotient))


def _division(value: Linear, divisor: int, quotient: bool) -> Linear:
    """Quotient or remainder, with multiples of the divisor taken out."""
    outer = Linear(tuple((a, int(c) // divisor) for a, c in value.terms if int(c) % divisor == 0), int(value.const) // divisor)
    rest = Linear(tuple((a, c) for a, c in value.terms if int(c) % divisor), int(value.const) % divisor)
    found = bounds(rest) if not any(is_opaque(atom) for atom, _ in rest.terms) else None
    if found is not None and found[0] >= 0 and found[1] < divisor:
        return outer if quotient else rest
    coarse, fine, step = _steps(rest, divisor)
    if quotient:
        return outer + of(Quotient(coarse, divisor // step))
    return of(Remainder(coarse, divisor // step)) * step + fine


def _steps(value: Linear, divisor: int) -> tuple[Linear, Linear, int]:
    """`value` as coarse * step + fine with fine in [0, step), where step divides the divisor, so that fine does not affect the quotient.

    8 a + b with b < 8, divided by 32   ->   a, b, 8
    """
    terms = sorted(value.terms, key=lambda term: abs(int(term[1])), reverse=True)
    for count in range(1, len(terms) + 1):
        step = gcd(divisor, *(int(c) for _, c in terms[:count]))
        fine = Linear(tuple(terms[count:]), int(value.const) % step)
        found = bounds(fine) if not any(is_opaque(atom) for atom, _ in fine.terms) else None
        if found is not None and found[0] >= 0 and found[1] < step:
            return Linear(tuple((a, int(c) // step) for a, c in terms[:count]), int(value.const) // step), fine, step
    return value, Linear(), 1


class _Simplifier:
    """buffers: what to use instead of them."""

    def __init__(self, buffers: Mapping[Buffer, Buffer]) -> None:
        self.buffers = buffers

    def nodes(self, nodes: tuple[Node, ...]) -> tuple[tuple[Node, ...], tuple[Buffer, ...]]:
        """The simplified nodes, and the local buffers of removed loops."""
        result: list[Node] = []
        loose: list[Buffer] = []
        for node in nodes:
            if isinstance(node, Store):
                result.append(self._store(node))
                continue
            body, inner = self.nodes(node.body)
            if node.var.extent == 1:
                result += body
                loose += [*node.locals, *inner]
            else:
                kept = tuple(buffer for buffer in (*node.locals, *inner) if buffer not in self.buffers)
                result.append(replace(node, body=body, locals=kept))
        return tuple(result), tuple(loose)

    def _store(self, store: Store) -> Store:
        return replace(
            store,
            buffer=self.buffers.get(store.buffer, store.buffer),
            index=tuple(self._index(i) for i in store.index),
            value=self._value(store.value),
            reduce_vars=tuple(var for var in store.reduce_vars if var.extent != 1),
            guards=merged(tuple(replace(guard, value=self._index(guard.value)) for guard in store.guards if guard.needed)),
        )

    def _value(self, expr: Expr) -> Expr:
        return fold(expr, self._node)

    def _node(self, node: Expr, operands: tuple[Expr, ...]) -> Expr:
        if isinstance(node, Access):
            return Access(self.buffers.get(node.buffer, node.buffer), tuple(self._index(i) for i in node.index), node.dtype)
        if isinstance(node, IndexValue):
            return IndexValue(self._index(node.value))
        if isinstance(node, Select):
            condition, then, otherwise = operands
            return _choice(condition, then, otherwise, node.dtype)
        return with_operands(node, operands)

    def _index(self, linear: Linear) -> Linear:
        if any(is_opaque(atom) for atom, _ in linear.terms):
            linear = Linear(tuple((self._atom(atom), c) for atom, c in linear.terms), linear.const)
        return simplified_index(linear)

    def _atom(self, atom: Atom) -> Atom:
        """The atom, with the values that it depends on simplified at any depth."""
        if not is_opaque(atom):
            return atom
        if isinstance(atom, Quotient | Remainder):
            return type(atom)(self._index(atom.value), atom.divisor)
        assert isinstance(atom, Opaque)
        return Opaque(self._value(atom.value))


def _choice(condition: Expr, then: Expr, otherwise: Expr, dtype: str) -> Expr:
    """A select without the conditions that hold in every iteration."""
    left = [test for test in conjuncts(condition) if not _always(test)]
    if not left:
        return then
    needed = left[0]
    for test in left[1:]:
        needed = Binary("and", needed, test, "bool")
    return Select(needed, then, otherwise, dtype)


def merged(guards: Sequence[Guard]) -> tuple[Guard, ...]:
    """One guard for each sum of loops, without the bounds that hold in every iteration."""
    ranges: dict[frozenset[tuple[Atom, Int]], Guard] = {}
    for guard in guards:
        key, least = frozenset(guard.value.terms), guard.value.const
        known = ranges.get(key)
        if known is None:
            ranges[key] = guard
            continue
        apart = known.value.const - least  # of known.value from guard.value
        low = known.low if guard.low is None else guard.low + apart if known.low is None else max(known.low, guard.low + apart)
        high = known.high if guard.high is None else guard.high + apart if known.high is None else min(known.high, guard.high + apart)
        ranges[key] = Guard(known.value, low, high)
    return tuple(guard for guard in map(_without_bounds_that_hold, ranges.values()) if guard.low is not None or guard.high is not None)


def _without_bounds_that_hold(guard: Guard) -> Guard:
    reached = bounds(guard.value)
    if reached is None:
        return guard
    low = None if guard.low is not None and reached[0] >= guard.low else guard.low
    high = None if guard.high is not None and reached[1] < guard.high else guard.high
    return replace(guard, low=low, high=high)


def conjuncts(expr: Expr) -> list[Expr]:
    """The operands of a conjunction."""
    found: list[Expr] = []
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Binary) and node.op == "and":
            stack += (node.right, node.left)
        else:
            found.append(node)
    return found


def index_of(expr: Expr) -> Linear | None:
    """An integer expression as an index; None for anything else."""
    if isinstance(expr, IndexValue):
        return expr.value
    if isinstance(expr, Const) and not isinstance(expr.value, float):
        return Linear((), int(expr.value))
    return None


def comparison_of(test: object) -> tuple[str, Linear, Linear] | None:
    """A comparison of two indices by order: "lt", "le", "gt" or "ge", and both sides; None for anything else."""
    if not isinstance(test, Binary) or test.op not in ("lt", "le", "gt", "ge"):
        return None
    left, right = index_of(test.left), index_of(test.right)
    return None if left is None or right is None else (test.op, left, right)


def _always(test: Expr) -> bool:
    """True for a comparison of indices that holds in every iteration."""
    compared = comparison_of(test)
    if compared is None:
        return False
    op, left, right = compared
    found = bounds(left - right)
    if found is None:
        return False
    low, high = found
    return bool({"lt": high < 0, "le": high <= 0, "gt": low > 0, "ge": low >= 0}[op])


def chain(node: Node) -> tuple[tuple[For, ...], Store | None]:
    """The loops from `node` down to a store if they are perfectly nested, with no local buffers in between; (…, None) otherwise."""
    loops: list[For] = []
    while isinstance(node, For):
        loops.append(node)
        if len(node.body) != 1 or node.locals:
            return tuple(loops), None
        node = node.body[0]
    return tuple(loops), node
