"""Arithmetic over a population, recorded once instead of repeated for each population.

A sketch does the same arithmetic for every population. `Column` stands for a number that differs from program to program, `[n]`; its `Recorder` records what
is done with it. The record, a `Tape`, is a straight line of operations from the genes of the programs to the results. It runs over any rows: in NumPy by
`Tape.matrices`, and many times as fast by `ansor.codegen.tape_library`.

    i = table[gene 0]; j = table[gene 1]      ->      0  table  gene 0
    i * j + i                                         1  table  gene 1
                                                      2  multiply  0 1
                                                      3  add  0 2
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, cast, final

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ScheduleError
from ansor.ir.tape_operations import Op, calculated

Place = int
"""The place of an operation on the tape."""

Rows = NDArray[Any]
"""A matrix of the requested dtype."""


_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = int(Op.ADD), int(Op.SUBTRACT), int(Op.MULTIPLY), int(Op.DIVIDE)
_FLOOR_DIVIDE, _CEIL_DIVIDE, _REMAINDER = int(Op.FLOOR_DIVIDE), int(Op.CEIL_DIVIDE), int(Op.REMAINDER)
_MINIMUM, _MAXIMUM, _LESS, _LESS_EQUAL, _EQUAL = int(Op.MINIMUM), int(Op.MAXIMUM), int(Op.LESS), int(Op.LESS_EQUAL), int(Op.EQUAL)
_BOTH, _EITHER, _EXCESS, _CHOOSE, _MULTIPLY_ADD = int(Op.BOTH), int(Op.EITHER), int(Op.EXCESS), int(Op.CHOOSE), int(Op.MULTIPLY_ADD)
_POWER_OF_TWO = int(Op.POWER_OF_TWO)
_NOWHERE = -math.inf

Node = tuple[int, int, int, int]
"""Operation, a, b, c."""


@final
class Column:
    """A recorded number for each program of a population, float64 or a flag. It takes part in arithmetic like an array [n].

    low: a lower bound, -inf when none is known. A column has no truth value: recorded code may not branch on one.
    """

    __slots__ = ("low", "place", "recorder")
    __array_ufunc__ = None  # NumPy leaves operators to this class, and refuses its own functions
    __hash__ = object.__hash__

    def __init__(self, recorder: Recorder, place: Place, low: float) -> None:
        self.recorder = recorder
        self.place = place
        self.low = low

    def __bool__(self) -> bool:
        raise TypeError("a recorded column has no truth value: it differs from program to program")

    def _other(self, other: Operand) -> Column:
        return other if type(other) is Column else self.recorder.constant(other)

    def __add__(self, other: Operand) -> Column:
        if type(other) is not Column:
            if other == 0:
                return self
            other = self.recorder.constant(other)
        a, b = self.place, other.place
        key = (_ADD, a, b, 0) if a < b else (_ADD, b, a, 0)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, self.low + other.low) if found is None else found

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Number:
        if type(other) is not Column:
            return self if other == 0 else self + -other
        if other is self:
            return 0
        key = (_SUBTRACT, self.place, other.place, 0)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, _NOWHERE) if found is None else found

    def __rsub__(self, other: Operand) -> Column:
        key = (_SUBTRACT, self._other(other).place, self.place, 0)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, _NOWHERE) if found is None else found

    def __mul__(self, other: Operand) -> Number:
        if type(other) is not Column:
            if other == 1:
                return self
            if other == 0:
                return 0
            other = self.recorder.constant(other)
        a, b = self.place, other.place
        key = (_MULTIPLY, a, b, 0) if a < b else (_MULTIPLY, b, a, 0)
        found = self.recorder.nodes.get(key)
        if found is None:
            found = self.recorder.note(key, self.low * other.low if self.low >= 0 and other.low >= 0 else _NOWHERE)
        return found

    __rmul__ = __mul__

    def __neg__(self) -> Number:
        return self * -1

    def __truediv__(self, other: Operand) -> Number:
        if type(other) is not Column and math.frexp(other)[0] == 0.5:  # a power of two has an exact reciprocal
            return self * (1.0 / other)
        divisor = self._other(other)
        key = (_DIVIDE, self.place, divisor.place, 0)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, 0.0 if self.low >= 0 and divisor.low >= 0 else _NOWHERE) if found is None else found

    def __rtruediv__(self, other: Operand) -> Number:
        return self._other(other) / self

    def __floordiv__(self, other: Operand) -> Column:
        if type(other) is not Column and other == 1:
            return self
        divisor = self._other(other)
        key = (_FLOOR_DIVIDE, self.place, divisor.place, 0)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, 0.0 if self.low >= 0 and divisor.low >= 0 else _NOWHERE) if found is None else found

    def __rfloordiv__(self, other: Operand) -> Column:
        return self._other(other) // self

    def __mod__(self, other: Operand) -> Number:
        if type(other) is not Column and other == 1:
            return 0
        divisor = self._other(other)
        key = (_REMAINDER, self.place, divisor.place, 0)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, 0.0 if divisor.low >= 0 else _NOWHERE) if found is None else found

    def __rmod__(self, other: Operand) -> Number:
        return self._other(other) % self

    def __abs__(self) -> Column:
        return self if self.low >= 0 else self.of_one(Op.MAGNITUDE, 0.0)

    def __lt__(self, other: Operand) -> Flag:
        if type(other) is not Column and self.low >= other:
            return False
        return self.recorder.compared(_LESS, self, self._other(other))

    def __le__(self, other: Operand) -> Flag:
        if type(other) is not Column and self.low > other:
            return False
        return self.recorder.compared(_LESS_EQUAL, self, self._other(other))

    def __gt__(self, other: Operand) -> Flag:
        if type(other) is not Column and self.low > other:
            return True
        return self.recorder.compared(_LESS, self._other(other), self)

    def __ge__(self, other: Operand) -> Flag:
        if type(other) is not Column and self.low >= other:
            return True
        return self.recorder.compared(_LESS_EQUAL, self._other(other), self)

    def __eq__(self, other: Operand) -> Flag:  # type: ignore[override]  # for each program, as for arrays
        if other is self:
            return True
        if type(other) is not Column and self.low > other:
            return False
        a, b = self.place, self._other(other).place
        key = (_EQUAL, a, b, 0) if a < b else (_EQUAL, b, a, 0)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, 0.0) if found is None else found

    def __ne__(self, other: Operand) -> Flag:  # type: ignore[override]  # for each program, as for arrays
        same = self == other
        return ~same if type(same) is Column else not same

    def __and__(self, other: Column | bool) -> Flag:
        if type(other) is not Column:
            return self if other else False
        return self._flags(_BOTH, other)

    __rand__ = __and__

    def __or__(self, other: Column | bool) -> Flag:
        if type(other) is not Column:
            return True if other else self
        return self._flags(_EITHER, other)

    __ror__ = __or__

    def _flags(self, op: int, other: Column) -> Column:
        a, b = self.place, other.place
        if a == b:
            return self
        key = (op, a, b, 0) if a < b else (op, b, a, 0)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, 0.0) if found is None else found

    def __invert__(self) -> Column:
        inner = self.recorder.inverse.get(self.place)
        if inner is None:
            inner = self.recorder.inverse[self.place] = self.of_one(Op.NOT, 0.0)
            self.recorder.inverse[inner.place] = self
        return inner

    def of_one(self, op: int, low: float) -> Column:
        """An operation on this column alone."""
        key = (int(op), self.place, 0, 0)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, low) if found is None else found

    def minimum(self, other: Operand) -> Number:
        """The elementwise minimum."""
        if type(other) is not Column:
            if self.low >= other:
                return cast(int, other)
            other = self.recorder.constant(other)
        a, b = self.place, other.place
        if a == b:
            return self
        key = (_MINIMUM, a, b, 0) if a < b else (_MINIMUM, b, a, 0)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, min(self.low, other.low)) if found is None else found

    def maximum(self, other: Operand) -> Column:
        """The elementwise maximum."""
        if type(other) is not Column:
            if self.low >= other:
                return self
            other = self.recorder.constant(other)
        a, b = self.place, other.place
        if a == b:
            return self
        key = (_MAXIMUM, a, b, 0) if a < b else (_MAXIMUM, b, a, 0)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, max(self.low, other.low)) if found is None else found

    def above(self, other: Operand) -> Column:
        """By how much this exceeds `other`, 0 where it does not."""
        key = (_EXCESS, self.place, self._other(other).place, 0)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, 0.0) if found is None else found

    def below(self, other: Operand) -> Column:
        """By how much `other` exceeds this, 0 where it does not."""
        return self._other(other).above(self)

    def power_of_two(self, most: Operand) -> Column:
        """The largest power of two up to `most` (itself a power of two) that divides this integer."""
        key = (_POWER_OF_TWO, self.place, self._other(most).place, 0)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, 1.0) if found is None else found

    def multiplied_added(self, factor: Operand, summand: Operand) -> Operand:
        """This times `factor` plus `summand`."""
        if type(factor) is not Column:
            return self * factor + summand
        key = (_MULTIPLY_ADD, self.place, factor.place, self._other(summand).place)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, _NOWHERE) if found is None else found

    def ceil_divided(self, other: Operand) -> Column:
        """This over `other`, rounded up."""
        if type(other) is not Column and other == 1:
            return self
        divisor = self._other(other)
        key = (_CEIL_DIVIDE, self.place, divisor.place, 0)
        least = 1.0 if self.low > 0 else 0.0 if self.low >= 0 else _NOWHERE
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, least if divisor.low >= 0 else _NOWHERE) if found is None else found

    def chosen(self, then: Operand, otherwise: Operand) -> Operand:
        """`then` where this flag holds."""
        a, b = type(then) is Column, type(otherwise) is Column
        if then is otherwise or not (a or b) and then == otherwise:
            return then
        if not (a or b):
            if then == 1 and otherwise == 0:
                return self
            if then == 0 and otherwise == 1:
                return ~self
        yes, no = self._other(then), self._other(otherwise)
        key = (_CHOOSE, self.place, yes.place, no.place)
        found = self.recorder.nodes.get(key)
        return self.recorder.note(key, min(yes.low, no.low)) if found is None else found


Operand = Column | int | float | bool
Number = Column | int
Flag = Column | bool


class Recorder:
    """Records operations, each once: a repeated operation returns the earlier column. `nodes` holds the operations in order."""

    def __init__(self) -> None:
        self.nodes: dict[Node, Column] = {}
        self.inverse: dict[Place, Column] = {}
        self._constants: dict[float, Column] = {}
        self._tables: dict[int, list[tuple[Place, NDArray[np.int64]]]] = {}
        self._written = np.zeros((0, 4), np.int32)

    def note(self, key: Node, low: float) -> Column:
        """The column of a new operation."""
        found = self.nodes[key] = Column(self, len(self.nodes), low)
        return found

    def constant(self, value: float) -> Column:
        """The same number for every program."""
        found = self._constants.get(value)
        if found is None:
            found = self._constants[value] = self.note((int(Op.CONSTANT), len(self._constants), 0, 0), float(value))
        return found

    def compared(self, op: int, a: Column, b: Column) -> Flag:
        """A comparison of two columns."""
        if a is b:
            return op == _LESS_EQUAL
        key = (op, a.place, b.place, 0)
        found = self.nodes.get(key)
        return self.note(key, 0.0) if found is None else found

    def numbers(self, gene: int, table: NDArray[np.int64]) -> tuple[int | NDArray[np.int64], ...]:
        """The numbers that a gene stands for, given a row [parts] for each of its values; typed as the arrays they stand for. Call once per gene."""
        self._tables[gene] = []
        return tuple(self._number(gene, table[:, part]) for part in range(table.shape[1]))

    def _number(self, gene: int, values: NDArray[np.int64]) -> int | NDArray[np.int64]:
        if (values == values[0]).all():
            return int(values[0])
        tables = self._tables[gene]
        found = self.note((int(Op.TABLE), gene, len(tables), len(values)), float(values.min()))
        tables.append((found.place, values))
        return cast("NDArray[np.int64]", found)

    def tape(self, genes: Sequence[int] | None = None) -> Tape:
        """All operations recorded so far, for rows of these genes; of all genes by default."""
        nodes, tables, size = self._all_nodes().copy(), [np.zeros(0, np.int64)], 0
        nodes[nodes[:, 0] == Op.TABLE, 1] = -1  # a gene missing from these rows
        for k, gene in enumerate(sorted(self._tables) if genes is None else genes):
            for place, values in self._tables[gene]:
                nodes[place, 1:3] = gene if genes is None else k, size
                tables.append(values)
                size += len(values)
        return Tape(nodes, np.asarray(list(self._constants), np.float64), np.concatenate(tables).astype(np.float64))

    def _all_nodes(self) -> NDArray[np.int32]:
        """The operations in order; only those added since the last call are converted."""
        new = len(self.nodes) - len(self._written)
        latest = [*islice(reversed(self.nodes), new)]
        written = np.fromiter(chain.from_iterable(reversed(latest)), np.int32, 4 * new).reshape(-1, 4)
        self._written = np.concatenate([self._written, written])
        return self._written

    def forget(self) -> None:
        """Drop all columns, which form reference cycles with this recorder."""
        self.nodes.clear()
        self.inverse.clear()
        self._constants.clear()
        self._tables.clear()


@dataclass(frozen=True, eq=False)
class Matrix:
    """The results wanted for each program: a row of a matrix [n, columns].

    template: [columns], the numbers that all programs share, in the matrix's dtype (float32, float64 or bool); columns: those of the other numbers;
    places: the places of these on the tape.
    """

    template: Rows
    columns: tuple[int, ...]
    places: tuple[Place, ...]


def matrix(values: Sequence[object], dtype: type[np.generic]) -> Matrix:
    """A matrix from numbers and recorded columns, one for each of its columns."""
    found = [(k, value.place) for k, value in enumerate(values) if isinstance(value, Column)]
    template = np.asarray([0 if isinstance(value, Column) else value for value in values], dtype)
    return Matrix(template, tuple(k for k, _ in found), tuple(place for _, place in found))


@dataclass(frozen=True, eq=False)
class Tape:
    """A straight line of operations.

    nodes: int32 [operations, 4]: operation, a, b, c, where operands are places of earlier operations, see Op; constants, tables: float64.
    """

    nodes: NDArray[np.int32]
    constants: NDArray[np.float64]
    tables: NDArray[np.float64]

    def matrices(self, genes: NDArray[np.int64], wanted: Sequence[Matrix]) -> list[Rows]:
        """These matrices for rows of genes [n, choices]. Raises ScheduleError for a gene outside its table."""
        values = self._values(genes, [place for one in wanted for place in one.places])
        found = []
        for one in wanted:
            rows = np.tile(one.template, (len(genes), 1))
            for column, place in zip(one.columns, one.places, strict=True):
                rows[:, column] = values[place]
            found.append(rows)
        return found

    def cut(self, wanted: Sequence[Matrix]) -> tuple[Tape, list[Matrix]]:
        """The tape reduced to what these matrices depend on, and the matrices with their new places."""
        nodes: list[Node] = self.nodes.tolist()
        needed = _needed(nodes, [place for one in wanted for place in one.places])
        moved = {place: k for k, place in enumerate(needed)}
        kept = self.nodes[needed]
        for row, place in zip(kept, needed, strict=True):
            operands = _operands(*nodes[place])
            row[1 : 1 + len(operands)] = [moved[one] for one in operands]
        return replace(self, nodes=kept), [replace(one, places=tuple(moved[place] for place in one.places)) for one in wanted]

    def _values(self, genes: NDArray[np.int64], wanted: Sequence[Place]) -> dict[Place, NDArray[np.float64]]:
        """The values of these places and of all that they depend on, float64 [n] each."""
        nodes: list[Node] = self.nodes.tolist()
        found: dict[Place, NDArray[np.float64]] = {}
        for place in _needed(nodes, wanted):
            op, a, b, c = nodes[place]
            if op == Op.CONSTANT:
                found[place] = np.full(len(genes), self.constants[a])
            elif op == Op.TABLE:
                found[place] = self.tables[b + _checked(genes, a, c)]
            else:
                found[place] = calculated(Op(op), *(found[k] for k in _operands(op, a, b, c)))
        return found


def _checked(genes: NDArray[np.int64], choice: int, size: int) -> NDArray[np.int64]:
    """The genes of a choice, each of which must be one of `size` values."""
    if choice >= genes.shape[1] or ((genes[:, choice] < 0) | (genes[:, choice] >= size)).any():
        raise gene_error()
    return genes[:, choice]


def gene_error() -> ScheduleError:
    """The error for rows with genes that no sketch has."""
    return ScheduleError("asked for rows with genes outside its tables; a row has a gene for each choice, less than the number of its values")


def _operands(op: int, a: int, b: int, c: int) -> tuple[int, ...]:
    return () if op <= Op.TABLE else (a, b, c) if op >= Op.CHOOSE else (a,) if Op.NOT <= op <= Op.LOG2_OF_ONE_MORE else (a, b)


def _needed(nodes: list[Node], wanted: Iterable[Place]) -> list[Place]:
    """The places that the wanted ones depend on, in order."""
    live = [False] * len(nodes)
    for place in wanted:
        live[place] = True
    for place in range(len(nodes) - 1, -1, -1):
        if live[place]:
            for k in _operands(*nodes[place]):
                live[k] = True
    return [place for place, needed in enumerate(live) if needed]
