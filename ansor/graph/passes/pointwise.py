"""Computes convolutions whose kernel is a single point as matrix products: their places are rows.

    conv 1x1 of [1, 14, 14, 256]      becomes      reshape to [196, 256] ─► dense ─► reshape

All places are then one axis, so tiles need not fit into a row of the image, there are fewer programs to choose among, and layers with the same number of places
share a kernel. Reshaping costs nothing. Runs on channels-last graphs.
"""

from __future__ import annotations

from math import prod

from ansor.graph.ir import Graph, Node, Rewriter
from ansor.graph.passes.padding import CONVOLUTIONS


def pointwise_products(graph: Graph) -> Graph:
    """The graph with products instead of convolutions by constant kernels of a single point."""
    write = Rewriter(graph)
    for node in graph:
        if _is_pointwise(graph, node):
            _write(write, node)
        else:
            write.keep(node)
    return write.finished()


def _is_pointwise(graph: Graph, node: Node) -> bool:
    if node.op not in CONVOLUTIONS or not node.text("layout").endswith("C") or node.inputs[1] not in graph.constants or node.integer("groups") != 1:
        return False
    kernel = graph.constants[node.inputs[1]].shape[:-2]
    return {*kernel, *node.integers("strides")} == {1} and not any(node.integers("padding"))


def _write(write: Rewriter, node: Node) -> None:
    rows = prod(node.shape[:-1])
    weight = write.graph.constants[node.inputs[1]].reshape(-1, node.shape[-1]).transpose()
    data = Node(write.fresh(f"{node.name}_rows"), "reshape", (write.now(node.inputs[0]),), (rows, weight.shape[1]), node.dtype)
    inputs = (write.add(data), write.constant(f"{node.name}_weight", weight), *map(write.now, node.inputs[2:]))
    product = Node(write.fresh(f"{node.name}_product"), "dense", inputs, (rows, node.shape[-1]), node.dtype)
    write.add(Node(node.name, "reshape", (write.add(product),), node.shape, node.dtype))
