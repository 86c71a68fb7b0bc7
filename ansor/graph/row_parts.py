"""Computes a stretch of a network for a few rows of the batch at a time.

    conv2d ─► relu ─► conv2d ─► …        becomes, with two rows, one at a time

    rows 0 ─► conv2d ─► relu ─► conv2d ─┐
    rows 1 ─► conv2d ─► relu ─► conv2d ─┴► join ─► …

The activations of one row may fit in the caches where those of all rows do not. Nothing is copied: `rows` and `join` are views.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ansor.errors import ModelError
from ansor.graph.fuse import Group
from ansor.graph.ir import VIEWS, Graph, Node, Rewriter, Value
from ansor.graph.memory import ALIGNMENT
from ansor.graph.rows import Rows, rows_of
from ansor.graph.tasks import ExtractedGraph, with_graph


@dataclass(frozen=True)
class Stretch:
    """The groups from number `first` to before `end`, computed for `rows` rows at a time."""

    first: int
    end: int
    rows: int


@dataclass(frozen=True)
class Room:
    """Where a network may be divided. rows: in each part; cuts: the numbers of groups at which a stretch may begin or end; it may not contain `mixing` ones."""

    rows: int
    cuts: tuple[int, ...]
    mixing: frozenset[int]

    def stretches(self) -> Iterator[Stretch]:
        """All stretches that can be computed in parts."""
        for place, first in enumerate(self.cuts):
            limit = min((number for number in self.mixing if number >= first), default=math.inf)
            yield from (Stretch(first, end, self.rows) for end in self.cuts[place + 1 :] if end <= limit)

    @property
    def longest(self) -> Stretch | None:
        """The longest stretch."""
        return max(self.stretches(), key=lambda one: one.end - one.first, default=None)


def room(whole: ExtractedGraph, most_parts: int) -> Room:
    """Where a network may be divided into parts of as few rows as possible, but at most so many parts.

    Kernels read and write aligned arrays, so it is not divided where an array is in use whose parts would not be aligned.
    """
    found, groups = rows_of(whole.graph), [placed.group for placed in whole.placed]
    rows = 0 if found is None else next(each for each in range(1, found.count + 1) if found.count % each == 0 and found.count // each <= most_parts)
    if found is None or rows == found.count:
        return Room(rows, (), frozenset())
    mixing = frozenset(number for number, group in enumerate(groups) if any(node.name in found.mixed for node in group.nodes))
    barred = {number for name, used in _uses(whole).items() if name in found.inside and not _aligned(whole, name, found, rows) for number in used}
    return Room(rows, tuple(number for number in range(len(groups) + 1) if number not in barred), mixing)


def _uses(whole: ExtractedGraph) -> dict[str, range]:
    """For each array in memory of its own, the groups before which it is in use: made, and still to be read by the group or a later one."""
    roots = {name: name for name in whole.graph.values}
    for node in whole.graph:
        if node.op in VIEWS:
            roots[node.name] = roots[node.inputs[0]]
    found = {name: range(0) for name in whole.graph.inputs}
    for number, placed in enumerate(whole.placed):
        for name in placed.group.inputs:
            found[roots[name]] = range(found.get(roots[name], range(0)).start, number + 1)
        found.update((name, range(number + 1, number + 1)) for name in placed.group.outputs)
    for name in whole.graph.outputs:
        found[roots[name]] = range(found.get(roots[name], range(0)).start, len(whole.placed) + 1)
    return found


def _aligned(whole: ExtractedGraph, name: str, rows: Rows, each: int) -> bool:
    """Whether each part of an array begins where kernels may read, if the array does."""
    value = whole.graph.value(name)
    return value.size // rows.count * each * np.dtype(value.dtype).itemsize % ALIGNMENT == 0


@dataclass(frozen=True)
class InParts:
    """A network with a stretch in parts. groups: for each of its groups, the number of the group of the whole network that computes the same."""

    extracted: ExtractedGraph
    groups: tuple[int, ...]


def in_parts(whole: ExtractedGraph, stretch: Stretch) -> InParts:
    """The network with a stretch of its groups in parts. Raises ModelError if the stretch has arrays that depend on several rows."""
    found = rows_of(whole.graph)
    if found is None or found.count % stretch.rows:
        raise ModelError(f"asked to compute a network for {stretch.rows} rows at a time; its inputs have {found.count if found else 'fewer than two'}")
    if not {stretch.first, stretch.end} <= set(room(whole, found.count // stretch.rows).cuts):
        raise ModelError(f"asked to compute groups {stretch.first} to {stretch.end} in parts, whose arrays would not be aligned")
    groups = [placed.group for placed in whole.placed]
    dividing = _Dividing(whole.graph, groups, stretch, found)
    extracted = with_graph(whole, dividing.divided())
    numbers = {node.name: number for number, group in enumerate(groups) for node in group.nodes}
    names = (placed.group.output.name for placed in extracted.placed)
    return InParts(extracted, tuple(numbers[dividing.origins.get(name, name)] for name in names))


class _Dividing:
    """Mutable, and private to one call of `in_parts`."""

    def __init__(self, graph: Graph, groups: Sequence[Group], stretch: Stretch, rows: Rows) -> None:
        self.graph, self.rows, self.each = graph, rows, stretch.rows
        self.before = _names(groups[: stretch.first])
        self.inside = _names(groups[stretch.first : stretch.end])
        self.write = Rewriter(graph)
        self.origins: dict[str, str] = {}
        self.repeated: dict[str, str] = {}
        mixed = self.inside & rows.mixed
        if mixed:
            raise ModelError(f"asked to compute {min(mixed)} for {self.each} rows at a time, but it depends on several rows")

    def divided(self) -> Graph:
        """First what the parts need, then the parts one after another, then everything else. Views are made again where they are read."""
        known = {*self.graph.inputs, *self.graph.constants}
        for node in self.graph:
            first = node.name in self.before or (node.name in self.inside and node.name not in self.rows.inside) or node.op in VIEWS
            if first and all(name in known for name in node.inputs):
                self.write.keep(node)
                known.add(node.name)
        parts = [self._part(number, known) for number in range(self.rows.count // self.each)]
        for node in self.graph:
            if node.name in self.inside and node.name in self.rows.inside:
                self.write.add(Node(node.name, "join", tuple(part[node.name] for part in parts), node.shape, node.dtype))
            elif node.name not in known:
                self.write.keep(node)
        return self.write.finished()

    def _part(self, number: int, known: set[str]) -> dict[str, str]:
        """The nodes of the stretch for one part of the rows: their names by the names of the whole."""
        names: dict[str, str] = {}
        for node in self.graph:
            divides = node.name in self.inside or (node.op in VIEWS and node.name not in known and node.inputs[0] in names)
            if not divides or node.name not in self.rows.inside:
                continue
            inputs = tuple(self._operand(node, name, number, names) for name in node.inputs)
            name = self.write.fresh(f"{node.name}_part{number}")
            self.write.add(replace(node, name=name, inputs=inputs, shape=self._shape(node)))
            names[node.name], self.origins[name] = name, node.name
        return names

    def _operand(self, node: Node, name: str, number: int, names: dict[str, str]) -> str:
        """An operand of a part: another node of the part, rows of an array from before, or an array that all rows share."""
        if not self.rows.reads(node, name, self.graph.value(name)):
            return name
        if name in self.rows.repeated:
            return self._repeated(name)
        if name not in names:
            names[name] = self._rows(name, number)
        return names[name]

    def _repeated(self, name: str) -> str:
        """A constant for one part; it has the same values for all."""
        if name not in self.repeated:
            array = self.graph.constants[name]
            self.repeated[name] = self.write.constant(f"{name}_each", array[: array.shape[0] // self.rows.count * self.each])
        return self.repeated[name]

    def _rows(self, name: str, number: int) -> str:
        value = self.graph.value(name)
        shape = self._shape(value)
        return self.write.add(Node(self.write.fresh(f"{name}_rows{number}"), "rows", (name,), shape, value.dtype, {"start": number * shape[0]}))

    def _shape(self, whole: Value | Node) -> tuple[int, ...]:
        return (whole.shape[0] // self.rows.count * self.each, *whole.shape[1:])


def _names(groups: Iterable[Group]) -> set[str]:
    return {node.name for group in groups for node in group.nodes}


