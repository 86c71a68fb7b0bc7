"""Computes products that repeat an operand, such as the keys of several heads of queries, as fewer products of more rows.

    keys [2, 64, 32] ─► expand [2, 4, 64, 32] ─► batch_matmul of 8 x [64, 64]      becomes      keys ─► batch_matmul of 2 x [256, 64]

The operand is read where it is instead of being copied. Attention that one thread computes in blocks keeps its heads, and copies of their keys and values:
`ansor.graph.attention` divides it by heads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from ansor.graph.attention import attentions
from ansor.graph.ir import Graph, Node, Rewriter


def share_operands(graph: Graph) -> Graph:
    """The graph with products that share an operand as one product each."""
    made = {node.name: node for node in graph}
    if not any(node.op == "expand" for node in graph):
        return graph
    in_blocks = {node.name for found in attentions(graph) if len(found.blocks(1)) > 1 for node in (found.scores, found.result)}
    write = Rewriter(graph)
    for node in graph:
        source, times = _repeated(graph, made, node) if node.op == "batch_matmul" and node.name not in in_blocks else ("", 1)
        if times == 1:
            write.keep(node)
        else:
            _write(write, node, source, times)
    return write.finished()


def _write(write: Rewriter, node: Node, source: str, times: int) -> None:
    """Write a product whose right operand is each matrix of `source`, so many times."""
    left, right = (write.values[write.now(name)] for name in node.inputs)
    (count, rows, inner), columns = left.shape, node.shape[2]
    first = write.add(Node(write.fresh(f"{node.name}_rows"), "reshape", (write.now(node.inputs[0]),), (count // times, times * rows, inner), left.dtype))
    shared = write.add(Node(write.fresh(f"{node.name}_shared"), "reshape", (write.now(source),), (count // times, *right.shape[1:]), right.dtype))
    whole = replace(node, name=write.fresh(f"{node.name}_whole"), inputs=(first, shared), shape=(count // times, times * rows, columns))
    write.add(Node(node.name, "reshape", (write.add(whole),), node.shape, node.dtype))


def _repeated(graph: Graph, made: Mapping[str, Node], node: Node) -> tuple[str, int]:
    """What the right operand of a product repeats, and how often each of its matrices follows itself; 1 if it repeats nothing, or something else."""
    expand = made.get(node.inputs[1])
    while expand is not None and expand.op == "reshape":
        expand = made.get(expand.inputs[0])
    if expand is None or expand.op != "expand":
        return "", 1
    count, *matrix = graph.value(node.inputs[1]).shape
    given = graph.value(expand.inputs[0]).shape
    given = (1,) * (len(expand.shape) - len(given)) + given
    for end in range(len(given) + 1):
        if prod(expand.shape[:end]) == count and prod(expand.shape[end:]) == prod(matrix) and expand.shape[end:] == given[end:]:
            begin = next(place for place in range(end, -1, -1) if place == 0 or given[place - 1] != 1)
            if expand.shape[:begin] == given[:begin]:
                return expand.inputs[0], prod(expand.shape[begin:end])
    return "", 1
