"""Computes attention a block at a time, so that the scores stay in a cache.

The scores of 12 heads and 2,048 tokens take 200 MB. So all nodes from the first product to the second are made once for each block. Nothing is copied: a block
reads `rows` of its operands, and its result is a part of a `join`. All arrays of a block have three dimensions, so the addition of a mask, which has four,
follows its product directly and becomes part of its kernel.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ansor.graph.attention import Attention, Block, Operand, attentions
from ansor.graph.ir import Graph, Node, Rewriter
from ansor.graph.row_parts import Stretch, in_parts
from ansor.graph.tasks import ExtractedGraph, with_graph


def in_blocks(extracted: ExtractedGraph, threads: int) -> ExtractedGraph:
    """The network with large attention in blocks, for this many threads."""
    graph = attention_in_blocks(extracted.graph, threads)
    return extracted if graph is extracted.graph else with_graph(extracted, graph)


def divided(whole: ExtractedGraph, stretch: Stretch | None, threads: int) -> ExtractedGraph:
    """The network as it runs: with a stretch of its groups in parts, if there is one, and with large attention in blocks."""
    return in_blocks(whole if stretch is None else in_parts(whole, stretch).extracted, threads)


def attention_in_blocks(graph: Graph, threads: int) -> Graph:
    """The graph with large attention in blocks; the same object if there is none."""
    large = {found.result.name: (found, blocks) for found in attentions(graph) if len(blocks := found.blocks(threads)) > 1}
    if not large:
        return graph
    inside = {node.name for found, _ in large.values() for node in found.nodes}
    write = _Dividing(graph)
    for node in graph:
        if node.name in large:
            write.divide(*large[node.name])
        elif node.name not in inside:
            write.keep(node)
    return write.finished()


class _Dividing(Rewriter):
    """Mutable, and private to one call of `attention_in_blocks`."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._made: dict[tuple[object, ...], str] = {}  # blocks share parts of operands

    def divide(self, attention: Attention, blocks: list[Block]) -> None:
        """Adds attention in these blocks."""
        result = attention.result
        self.add(Node(result.name, "join", tuple(self._block(attention, block) for block in blocks), result.shape, result.dtype))

    def _block(self, attention: Attention, block: Block) -> str:
        """Adds a block, and returns the name of its result."""
        names: dict[str, str] = {}
        for node in attention.nodes:
            if node.op == "reshape":  # all arrays of a block have three dimensions
                names[node.name] = names[node.inputs[0]]
                continue
            outside = iter(attention.operands[node.name])
            inputs = tuple(names[name] if name in names else self._part(next(outside), block) for name in node.inputs)
            width = node.shape[-1] if node is attention.result else block.columns
            made = replace(node, name=self.fresh(f"{node.name}_block"), inputs=inputs, shape=(block.heads, block.rows, width))
            names[node.name] = self.add(made.having(axis=2) if node.op == "softmax" else made)
        return names[attention.result.name]

    def _part(self, operand: Operand, block: Block) -> str:
        """The part of an operand that a block reads, in three dimensions."""
        begin, shape = operand.begin(block), operand.shape(block)
        count = shape[0] * shape[1]
        if operand.constant is None:
            every = self._viewed("reshape", operand.name, (prod(operand.leads) * operand.rows, operand.columns))
            return self._viewed("reshape", self._viewed("rows", every, (count, operand.columns), start=begin), shape)
        key = operand.name, begin, shape
        if key not in self._made:
            rows = operand.constant.reshape(-1, operand.columns)[begin : begin + count, : shape[2]]
            self._made[key] = self.constant(f"{operand.name}_part", rows.reshape(shape))
        return self._made[key]

    def _viewed(self, op: str, name: str, shape: tuple[int, ...], **attributes: int) -> str:
        """A view of an array; the array itself if it has the shape."""
        value, key = self.values[name], (op, name, shape, *attributes.values())
        if value.shape == shape:
            return name
        if key not in self._made:
            self._made[key] = self.add(Node(self.fresh(f"{name}_{op}"), op, (name,), shape, value.dtype, attributes))
        return self._made[key]
