"""Moves reshapes below elementwise operators, so that an operator directly follows the node that computes its operand.

    dense ─► reshape ─► gelu ─► …      becomes      dense ─► gelu ─► reshape ─► …

Reshaping costs nothing, so the other operands are reshaped to match.
"""

from __future__ import annotations

from dataclasses import replace

from ansor.graph.ir import ELEMENTWISE, Graph, Node, Rewriter


def sink_reshapes(graph: Graph) -> Graph:
    """The graph with elementwise nodes moved above reshapes where possible."""
    write = Rewriter(graph)
    sources: dict[str, str] = {}  # an array that is a reshape -> what it reshapes, in the new graph
    for node in graph:
        if node.op == "reshape":
            _reshape(write, node, sources)
            continue
        chosen = next((name for name in node.inputs if name in sources and _fits(write, node, sources[name])), None)
        if chosen is None:
            write.keep(node)
            continue
        shape = write.values[sources[chosen]].shape
        inputs = tuple(_operand(write, name, node, shape, sources) for name in node.inputs)
        sources[node.name] = write.add(replace(node, name=write.fresh(f"{node.name}_flat"), inputs=inputs, shape=shape))
        write.add(Node(node.name, "reshape", (sources[node.name],), node.shape, node.dtype))
    return write.finished()


def _reshape(write: Rewriter, node: Node, sources: dict[str, str]) -> None:
    """Merge a reshape of a reshape into one; drop it if it restores the original shape."""
    source = sources.get(node.inputs[0], write.now(node.inputs[0]))
    sources[node.name] = source
    if write.values[source].shape == node.shape:
        write.forward(node.name, source)
    else:
        write.add(replace(node, inputs=(source,)))


def _fits(write: Rewriter, node: Node, source: str) -> bool:
    """True if an elementwise node may have the shape of `source` instead: every operand has a form for it."""
    shape = write.values[source].shape
    if node.op not in ELEMENTWISE or write.values[source].size != node.size or shape == node.shape or not shape:
        return False
    return all(_operand_fits(write.values[write.now(name)].shape, node.shape, shape) for name in node.inputs)


def _operand_fits(operand: tuple[int, ...], old: tuple[int, ...], new: tuple[int, ...]) -> bool:
    """True for an operand of the result's shape, a single element, or a vector along the last dimension, if both shapes have the same one."""
    return operand == old or operand in ((), (1,)) or (len(operand) == 1 and operand == old[-1:] == new[-1:])


def _operand(write: Rewriter, name: str, node: Node, shape: tuple[int, ...], sources: dict[str, str]) -> str:
    source = sources.get(name)
    if source is not None and write.values[source].shape == shape:
        return source
    now = write.now(name)
    return write.reshaped(now, shape, f"{name}_flat") if write.values[now].shape == node.shape else now
