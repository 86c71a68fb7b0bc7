"""Loop nests of one statement, with the variables of outer loops fixed to numbers.

Lanes are the dimensions along which a buffer is divided into elements: a dimension of 40 channels in blocks of 16 is 3 elements. A loop along lanes counts
in blocks here. The part of the last block beyond the end is computed, too, but not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ansor.errors import ScheduleError
from ansor.ir.linear import Linear, Var
from ansor.ir.loops import Access, Buffer, For, Guard, Node, Store
from ansor.ir.printer import linear_text
from ansor.te.expr import Binary, Cast, Expr

ARGUMENTS = ("input", "constant", "output")
Values = Mapping[Var, int]
Blocks = Mapping[int, int]
"""Dimension of a buffer -> the length of a block along it."""


@dataclass(frozen=True, eq=False)
class Sum:
    """An index: its start, and its step in each loop of the nest."""

    start: int
    steps: dict[Var, int]

    def last(self, extents: Mapping[Var, int]) -> int:
        """Its greatest value; steps are not negative."""
        return self.start + sum(step * (extents[var] - 1) for var, step in self.steps.items())


@dataclass(frozen=True, eq=False)
class Nest:
    """A store and its loops. extents: extents of the loops; values: values of the outer loops; along: loops along lanes, with the length of a block; starts:
    the starts of loops that do not begin at 0."""

    store: Store
    extents: dict[Var, int]
    values: Values
    along: dict[Var, int]
    starts: Mapping[Var, int] = field(default_factory=dict)
    _sums: dict[Linear, Sum] = field(init=False, default_factory=dict)

    def index(self, linear: Linear) -> Sum:
        """An index of the store, over the loops of the nest."""
        if linear not in self._sums:
            found = sum_of(linear, self.values, self.extents)
            ahead = sum(int(linear.coefficient(var)) * first for var, first in self.starts.items())
            self._sums[linear] = Sum(found.start + ahead, found.steps)
        return self._sums[linear]

    def counts(self) -> dict[Var, int]:
        """How often each loop runs; loops along lanes count in blocks."""
        return {var: -(-extent // self.along.get(var, 1)) for var, extent in self.extents.items()}

    def empty(self) -> bool:
        """Whether it does nothing."""
        return any(extent < 1 for extent in self.extents.values())


def sum_of(linear: Linear, values: Values, extents: Mapping[Var, int]) -> Sum:
    """An index over some loops, the others having values. Raises ScheduleError for an index that is divided, depends on data, or moves backwards."""
    start, steps = int(linear.const), {}
    for atom, coefficient in linear.terms:
        if not isinstance(atom, Var):
            raise ScheduleError(f"asked for a VTA program with an index that is divided or read ({linear_text(linear)}); it supports only sums of loops")
        if atom in values:
            start += values[atom] * int(coefficient)
        elif int(coefficient) and extents[atom] > 1:
            steps[atom] = int(coefficient)
    if any(step < 0 for step in steps.values()):
        raise ScheduleError(f"asked for a VTA program with an index that moves backwards ({linear_text(linear)})")
    return Sum(start, steps)


def leaf_store(node: Node) -> Store | None:
    """The only store of a nest without intermediates; None for other nests."""
    while isinstance(node, For):
        if len(node.body) != 1 or node.locals:
            return None
        node = node.body[0]
    return node


def loops_of(node: Node) -> Iterator[For]:
    """The loops of a perfect nest."""
    while isinstance(node, For):
        yield node
        node = node.body[0]


def nest_of(node: Node, values: Values, lanes: Mapping[Buffer, Blocks]) -> Nest:
    """A perfect nest, with its loops shortened to where its guards hold. Raises ScheduleError for guards that cannot be expressed as shorter loops."""
    store = leaf_store(node)
    assert store is not None
    extents = {loop.var: int(loop.var.extent) for loop in loops_of(node)}
    along: dict[Var, int] = {}
    for access in (Access(store.buffer, store.index, store.buffer.dtype), *accesses(store.value)):
        for dimension, block in lanes.get(access.buffer, {}).items():
            _note_lane(sum_of(access.index[dimension], values, extents), block, along, access)
    for guard in store.guards:
        if guard.needed:
            _cut(guard, values, extents, along)
    return Nest(store, extents, values, along)


def accesses(value: Expr) -> Iterator[Access]:
    """All accesses that a value reads."""
    if isinstance(value, Access):
        yield value
    for child in value.children:
        yield from accesses(child)


def plain(value: Expr) -> Expr:
    """A value without surrounding casts that preserve it, such as int8 to int32."""
    while isinstance(value, Cast) and value.dtype in ("int32", value.value.dtype) and value.value.dtype in ("int8", "int32"):
        value = value.value
    return value


def as_int32(value: Expr) -> Expr:
    """A value without surrounding conversions between int8 and int32, which is what the ALU computes; `value_on_core` checks that this is right."""
    while isinstance(value, Cast) and {value.dtype, value.value.dtype} <= {"int8", "int32"}:
        value = value.value
    return value


def multiplied(store: Store) -> tuple[Access, Access] | None:
    """The factors that a reduction multiplies element by element, in the accumulators, before it sums them."""
    value = plain(store.value)
    if store.combiner != "sum" or not isinstance(value, Binary) or value.op != "mul":
        return None
    left, right = plain(value.left), plain(value.right)
    inside = isinstance(left, Access) and isinstance(right, Access) and left.buffer.scope == right.buffer.scope == "acc"
    return (left, right) if inside else None  # type: ignore[return-value]  # both are accesses if inside


def _note_lane(index: Sum, block: int, along: dict[Var, int], access: Access) -> None:
    if index.start % block:
        found = f"asked for a VTA program that reads or writes {access.buffer.name} from channel {index.start} on; blocks have {block}"
        raise ScheduleError(f"{found}: make tiles whole blocks, and declare parts of tensors that begin inside a block as tensors of their own")
    for var, step in index.steps.items():
        if step == 1 and block > 1:
            along[var] = block
        elif step % block:
            found = f"asked for a VTA program that reads or writes {access.buffer.name} in steps of {step} channels; it moves blocks of {block} neighbours"
            raise ScheduleError(f"{found}: make tiles whole blocks, and pass strided channels as a tensor of their own")


def _cut(guard: Guard, values: Values, extents: dict[Var, int], along: Mapping[Var, int]) -> None:
    """Shorten a loop so that the guard holds."""
    index = sum_of(guard.value, values, extents)
    if guard.low is not None and index.start < int(guard.low):
        raise ScheduleError(f"asked for a VTA program that leaves out iterations before {guard.low} of ({guard}): it can only stop early")
    if guard.high is None or index.last(extents) < int(guard.high):
        return
    if index.start >= int(guard.high) or not index.steps:
        extents.update(dict.fromkeys(extents, 0))
        return
    var = max(index.steps, key=lambda one: index.steps[one])
    step, room = index.steps[var], int(guard.high) - index.start
    inner = [one for one in index.steps if one is not var]
    if room % step and any(one not in along for one in inner):
        raise ScheduleError(f"asked for a VTA program with part of a tile in two loops ({guard}): make the inner tile divide the extent")
    extents[var] = min(extents[var], -(-room // step))
