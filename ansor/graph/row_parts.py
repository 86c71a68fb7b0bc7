"""Computes a stretch of a network for a few rows of the batch at a time.

    conv2d ─► relu ─► conv2d ─► …        becomes, with two rows, one at a time

    rows 0 ─► conv2d ─► relu ─► conv2d ─┐
    rows 1 ─► conv2d ─► relu ─► conv2d ─┴► join ─► …

The activations of one row may fit in the caches where those of all rows do not. Nothing is copied: `rows` and `join` are views.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ansor.errors import ModelError
from ansor.graph.dtypes import in_memory
from ansor.graph.fuse import Group
from ansor.graph.ir import VIEWS, Graph, Node, Rewriter, Value
from ansor.graph.memory import ALIGNMENT
from ansor.graph.rows import Rows, rows_of
from ansor.graph.tasks import ExtractedGraph, with_graph
from ansor.support.text import counted


@dataclass(frozen=True)
class Stretch:
    """The groups from number `first` to before `end`, computed for `rows` rows at a time."""

    first: int
    end: int
    rows: int


def stretches(whole: ExtractedGraph, most_parts: int) -> tuple[Stretch, ...]:
    """All stretches that can be computed in parts, of as few rows as possible but in at most so many parts.

    A stretch has no group that mixes rows or runs in PyTorch. Kernels read and write aligned arrays, so the parts of each array that it reads from before, or
    leaves for later, have to be aligned.
    """
    found = rows_of(whole.graph)
    if found is None:
        return ()
    rows = next(each for each in range(1, found.count + 1) if found.count % each == 0 and found.count // each <= most_parts)
    if rows == found.count:
        return ()
    unaligned = [use for name, use in _uses(whole).items() if name in found.inside and not _aligned(whole, name, found, rows)]
    mixing = [number for number, placed in enumerate(whole.placed) if any(node.name in found.mixed for node in placed.group.nodes)]
    made: list[Stretch] = []
    for first in range(len(whole.placed)):
        limits = [min(later) for use in unaligned if use.made < first and (later := [reader for reader in use.readers if reader >= first])]
        limit = min([len(whole.placed), *limits, *(number for number in mixing if number >= first)])
        left = {end for use in unaligned if use.made >= first for end in range(use.made + 1, max(use.readers, default=use.made) + 1)}
        made += [Stretch(first, end, rows) for end in range(first + 1, limit + 1) if end not in left]
    return tuple(made)


@dataclass(frozen=True)
class _Use:
    """The groups that make an array, -1 for an input, and that read it; the network's results are read after the last group."""

    made: int
    readers: tuple[int, ...]


def _uses(whole: ExtractedGraph) -> dict[str, _Use]:
    """The uses of each array in memory of its own; what reads a view of an array reads the array."""
    roots = {name: name for name in whole.graph.values}
    for node in whole.graph:
        if node.op in VIEWS:
            roots[node.name] = roots[node.inputs[0]]
    made = dict.fromkeys((*whole.graph.inputs, *whole.graph.constants), -1)
    readers: dict[str, list[int]] = defaultdict(list)
    for number, placed in enumerate(whole.placed):
        made.update(dict.fromkeys(placed.group.outputs, number))
        for name in placed.group.inputs:
            readers[roots[name]].append(number)
    for name in whole.graph.outputs:
        readers[roots[name]].append(len(whole.placed))
    return {name: _Use(number, tuple(readers[name])) for name, number in made.items()}


def _aligned(whole: ExtractedGraph, name: str, rows: Rows, each: int) -> bool:
    """Whether each part of an array begins where kernels may read, if the array does. What NumPy cannot hold, only PyTorch reads, and whole."""
    value = whole.graph.value(name)
    return not in_memory(value.dtype) or value.size // rows.count * each * np.dtype(value.dtype).itemsize % ALIGNMENT == 0


@dataclass(frozen=True)
class InParts:
    """A network with a stretch in parts. groups: for each of its groups, the number of the group of the whole network that computes the same."""

    extracted: ExtractedGraph
    groups: tuple[int, ...]


def in_parts(whole: ExtractedGraph, stretch: Stretch) -> InParts:
    """The network with a stretch of its groups in parts. Raises ModelError unless it is one of its `stretches`."""
    found = rows_of(whole.graph)
    if found is None or stretch.rows < 1 or stretch not in stretches(whole, found.count // stretch.rows):
        raise ModelError(f"asked to compute groups {stretch.first} to {stretch.end - 1} for {counted(stretch.rows, 'row')} of the batch at a time, but "
                         "they need several rows, or arrays that would not be aligned; choose one of `stretches`")  # fmt: skip
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
