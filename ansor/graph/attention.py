"""Finds attention in a graph, and the blocks that it can be divided into.

    queries ─► batch_matmul ─► mul ─► add ─► softmax ─► batch_matmul ─► …
                   ▲                   ▲                     ▲
                  keys                mask                 values

A block is several heads if the scores of a head are small, else some rows of one head. If a known mask hides the last columns from all rows of a block, as a
causal one does, the block has the first columns only: the weights of the others are zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from ansor.graph.dtypes import in_memory
from ansor.graph.ir import ELEMENTWISE, Array, Graph, Node
from ansor.graph.memory import ALIGNMENT

KEPT_BYTES = 1 << 20
"""Scores of at most this size for each thread stay whole: they fit in a second-level cache of 1 or 2 MB, as processors with AVX-512 have."""

BLOCK_BYTES = 1 << 19
"""The most bytes of the scores of a block for each thread, unless that would be fewer rows than FEWEST_ROWS. The rest of the caches is for keys and values."""

FEWEST_ROWS = 32
"""The fewest rows of a head in a block for each thread, which share each load of a key and a value."""

MOST_BLOCKS = 128
"""The most blocks of attention, since each is several calls."""

COLUMN_COUNTS = 4
"""The most different numbers of columns among the blocks of attention with a mask, since each needs kernels of its own."""

STEP = 64
"""These numbers are multiples of this, which all vectors divide."""

HIDING = -1e29
"""Scores up to this have no weight beside any other score."""

ROWS, COLUMNS = "rows", "columns"


@dataclass(frozen=True)
class Block:
    """`heads` heads from `head` on, with all rows; or one head, with `rows` rows from `row` on. columns: how many of the first columns it computes."""

    head: int
    heads: int
    row: int
    rows: int
    columns: int


@dataclass(frozen=True, eq=False)
class Operand:
    """What a node of attention reads from outside, as matrices [prod(leads), rows, columns].

    lead: the dimensions of all heads, which `leads` is broadcast to; axes: for rows and columns of a matrix, ROWS or COLUMNS if they are those of the scores;
    constant: its values, if they are known.
    """

    name: str
    dtype: str
    leads: tuple[int, ...]
    lead: tuple[int, ...]
    rows: int
    columns: int
    axes: tuple[str, str]
    constant: Array | None

    def shape(self, block: Block) -> tuple[int, int, int]:
        """Of the part that a block reads. It is contiguous, because only blocks of one head have fewer columns."""
        matrices = self.matrices(block)
        assert matrices is not None
        extents = {ROWS: block.rows, COLUMNS: block.columns}
        return len(matrices), extents.get(self.axes[0], self.rows), extents.get(self.axes[1], self.columns)

    def matrices(self, block: Block) -> range | None:
        """The matrices that the heads of a block read: the same one for all, or one each; None for anything else."""
        places = [_place(head, self.leads, self.lead) for head in range(block.head, block.head + block.heads)]
        each = range(places[0], places[0] + len(places))
        return each[:1] if len(set(places)) == 1 else each if places == [*each] else None

    def begin(self, block: Block) -> int:
        """The first row that a block reads, in all matrices one after another."""
        first = self.matrices(block)
        assert first is not None
        return first.start * self.rows + (block.row if self.axes[0] == ROWS else 0)

    def divides(self, block: Block) -> bool:
        """Whether a block can read its part: if it is in memory, it has to begin where kernels may read."""
        if self.matrices(block) is None:
            return False
        return self.constant is not None or self.begin(block) * self.columns * np.dtype(self.dtype).itemsize % ALIGNMENT == 0


def _place(head: int, leads: tuple[int, ...], lead: tuple[int, ...]) -> int:
    """The number of the matrix that a head reads."""
    place = 0
    for dimension, extent in enumerate(leads):
        place = place * extent + head // prod(lead[dimension + 1 :]) % lead[dimension] % extent
    return place


@dataclass(frozen=True, eq=False)
class Attention:
    """The nodes of attention, in order: the first is a product, the scores of [heads, rows, columns], and the last multiplies weights by values. All heads of
    all items of the batch are in the first dimension. operands: by node, what it reads from outside, in order."""

    nodes: tuple[Node, ...]
    operands: Mapping[str, tuple[Operand, ...]]

    @property
    def scores(self) -> Node:
        """The first product."""
        return self.nodes[0]

    @property
    def result(self) -> Node:
        """The second product."""
        return self.nodes[-1]

    def blocks(self, threads: int) -> list[Block]:
        """What it is divided into: a single block if the scores are small, or if nothing else is possible. All threads compute a block together."""
        heads, rows, columns = self.scores.shape
        whole = [Block(0, heads, 0, rows, columns)]
        if not all(in_memory(dtype) for dtype in (self.scores.dtype, *(one.dtype for operands in self.operands.values() for one in operands))):
            return whole
        row_bytes = columns * np.dtype(self.scores.dtype).itemsize
        if heads * rows * row_bytes <= KEPT_BYTES * threads:
            return whole
        # from the largest to the smallest
        parts = [each for each in _divisors(rows)[1:] if each >= FEWEST_ROWS * threads and (rows % threads or each % threads == 0)]
        sizes = [(each, rows) for each in _divisors(heads)] + [(1, each) for each in parts]
        small = [one for one in sizes if prod(one) * row_bytes <= BLOCK_BYTES * threads]
        for each, part in [*small, *reversed(sizes[: len(sizes) - len(small)])]:  # the largest of the small ones first, then the smallest of the others
            found = [Block(head, each, row, part, columns) for head in range(0, heads, each) for row in range(0, rows, part)]
            if len(found) <= MOST_BLOCKS and all(map(self._divides, found)):
                return self._narrowed(found)
        return whole

    def _narrowed(self, blocks: list[Block]) -> list[Block]:
        """The blocks without columns that a mask hides from all their rows."""
        seen = self._seen() if blocks[0].heads == 1 else None  # the first keys of several heads are not contiguous
        if seen is None:
            return blocks
        columns = self.scores.shape[2]
        step = -(-columns // COLUMN_COUNTS // STEP) * STEP
        ends = [int(np.flatnonzero(seen[one.row : one.row + one.rows].any(axis=0))[-1]) + 1 for one in blocks]
        return [replace(one, columns=min(-(-end // step) * step, columns)) for one, end in zip(blocks, ends, strict=True)]

    def _seen(self) -> Array | None:
        """The scores that a known mask leaves, [rows, columns]; None unless all others have no weight, whatever finite queries, keys and values are."""
        nodes = [node for node in self.nodes if node.op != "reshape"]
        place = next(number for number, node in enumerate(nodes) if node.op == "softmax")
        before, mask, after = nodes[1 : place - 1], nodes[place - 1], nodes[place + 1 : -1]
        if place == 1 or any(self.operands[node.name] for node in before):
            return None  # other masks could make scores lower than hidden ones
        if not self.scores.attributes["transpose_b"] or self.result.attributes["transpose_b"]:
            return None  # the first keys, or values, are not contiguous
        if not all(_keeps_zeros(node, self.operands[node.name]) for node in after):
            return None
        seen = _left_by(mask, self.operands[mask.name])
        return seen if seen is not None and seen.any(axis=1).all() else None

    def _divides(self, block: Block) -> bool:
        _, rows, columns = self.result.shape
        begin = (block.head * rows + block.row) * columns * np.dtype(self.result.dtype).itemsize
        return begin % ALIGNMENT == 0 and all(one.divides(block) for operands in self.operands.values() for one in operands)


def _left_by(mask: Node, operands: tuple[Operand, ...]) -> Array | None:
    """The scores that a mask leaves, [rows, columns]; None if it is not one known matrix for all heads, or not a mask."""
    known = len(operands) == 1 and prod(operands[0].leads) == 1 and operands[0].axes == (ROWS, COLUMNS)
    values = operands[0].constant if known else None
    if values is None:
        return None
    values = values.reshape(operands[0].rows, operands[0].columns)
    if mask.op == "add":
        return np.logical_not(np.less_equal(values, HIDING))
    if mask.op != "where" or mask.inputs[0] != operands[0].name or "scalar" not in mask.attributes or mask.number("scalar") > HIDING:
        return None
    return np.equal(values, 0) if mask.attributes["scalar_first"] else np.not_equal(values, 0)


def _keeps_zeros(node: Node, operands: tuple[Operand, ...]) -> bool:
    """Whether weights of zero stay zero, and what else the node reads can be cut by columns, since it is known."""
    if node.op != "where" or len(operands) != 1 or operands[0].name != node.inputs[0]:
        return node.op == "cast"
    return operands[0].constant is not None and "scalar" in node.attributes and node.number("scalar") == 0


def _divisors(number: int) -> list[int]:
    """The largest first."""
    return [each for each in range(number, 0, -1) if number % each == 0]


def attentions(graph: Graph) -> Iterator[Attention]:
    """All attention of a graph, except where the scores or the weights are read elsewhere, too. Of two that share a product, the second is left out."""
    made, readers, results = {node.name: node for node in graph}, graph.consumers(), set[str]()
    for node in graph:
        nodes = _from_scores(node, graph, readers) if node.op == "batch_matmul" and node.name not in results else ()
        if nodes and nodes[-1].name not in results and any(one.op == "softmax" for one in nodes):
            results.add(nodes[-1].name)
            yield Attention(nodes, {one.name: tuple(_operands(graph, made, nodes, one)) for one in nodes})


def _from_scores(scores: Node, graph: Graph, readers: Mapping[str, list[Node]]) -> tuple[Node, ...]:
    """The nodes from one product to the next, each of which computes a row from the same row of the one before; none if there is no next one."""
    nodes = [scores]
    while len(following := readers.get(nodes[-1].name, [])) == 1 and nodes[-1].name not in graph.outputs:
        last, node = nodes[-1].name, following[0]
        nodes.append(node)
        if node.op == "batch_matmul":
            joined = any(reader.op == "join" for reader in readers.get(node.name, []))
            return tuple(nodes) if node.inputs[0] == last != node.inputs[1] and not joined else ()
        by_row = node.op == "reshape" or node.op in ELEMENTWISE or _is_softmax_of_rows(node)
        if not by_row or node.size != scores.size or node.shape[-2:] != scores.shape[-2:]:
            return ()
    return ()


def _is_softmax_of_rows(node: Node) -> bool:
    return node.op == "softmax" and node.integer("axis") % len(node.shape) == len(node.shape) - 1


def _operands(graph: Graph, made: Mapping[str, Node], nodes: tuple[Node, ...], node: Node) -> Iterator[Operand]:
    """What a node of attention reads from outside, in order."""
    _, rows, columns = nodes[0].shape
    inside = {one.name for one in nodes}
    for number, name in enumerate(node.inputs):
        if name in inside:
            continue
        value, constant = graph.value(name), _constant(graph, made, name)
        *leads, height, width = (1,) * (len(node.shape) - len(value.shape)) + value.shape
        if node.op != "batch_matmul":
            axes = ROWS if height == rows else "", COLUMNS if width == columns else ""
        elif node is nodes[0] and number == 0:
            axes = ROWS, ""
        else:
            axes = (COLUMNS, "") if bool(node.attributes["transpose_b"]) == (node is nodes[0]) else ("", COLUMNS)
        yield Operand(name, value.dtype, tuple(leads), node.shape[:-2], height, width, axes, constant)


def _constant(graph: Graph, made: Mapping[str, Node], name: str) -> Array | None:
    """The values of a constant, or of a reshaped one."""
    shape = graph.value(name).shape
    while name in made and made[name].op == "reshape":
        name = made[name].inputs[0]
    return graph.constants[name].reshape(shape) if name in graph.constants else None
