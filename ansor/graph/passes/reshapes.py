"""Moves reshapes below elementwise operators, so that an operator directly follows the node that computes its operand.

    dense ─► reshape ─► gelu ─► …      becomes      dense ─► gelu ─► reshape ─► …

Reshaping costs nothing, so the other operands are reshaped to match.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

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
    """True for an operand of the result's shape, or one that has a form beside the new shape (`_form`)."""
    return operand == old or _form(operand, old, new) is not None


def _form(operand: tuple[int, ...], old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape of an operand that is broadcast to `old`, to be broadcast to `new` with the same elements: of a single element, of a vector along the last
    dimension if both shapes have the same one, or of a number for each row if `new` is the matrix of the rows of `old`. None if there is none."""
    size = prod(operand)
    if size == 1:
        return operand if operand in ((), (1,)) else (1,)
    if size == operand[-1] == old[-1] == new[-1]:
        return operand[-1:]
    is_matrix = new == (prod(old[:-1]), old[-1])
    return (new[0], 1) if is_matrix and operand == (*old[:-1], 1) else None


def _operand(write: Rewriter, name: str, node: Node, shape: tuple[int, ...], sources: dict[str, str]) -> str:
    source = sources.get(name)
    if source is not None and write.values[source].shape == shape:
        return source
    now = write.now(name)
    value = write.values[now]
    wanted = shape if value.shape == node.shape else _form(value.shape, node.shape, shape)
    assert wanted is not None, "nodes are moved only if all operands have a form"
    if value.shape == wanted:
        return now
    array = write.constant_array(now)
    if array is not None:
        return write.constant(f"{name}_flat", array.reshape(wanted))
    return write.add(Node(write.fresh(f"{name}_flat"), "reshape", (now,), wanted, value.dtype))
