"""Computes convolutions whose kernel is a single point as matrix products: their places are rows.

    conv 1x1 of [1, 14, 14, 256] ─► relu      becomes      reshape to [196, 256] ─► dense ─► relu ─► reshape

All places are then one axis, so tiles need not fit into a row of the image, and there are fewer programs to choose among. Reshaping costs nothing. The
elementwise nodes that share the convolution's kernel become rows, too. If one of their operands has no form for that, the convolution stays. Runs on graphs
with channels last, after reshapes have moved: those of this pass stay at the ends of kernels.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ansor.graph.fuse import Group, fused
from ansor.graph.ir import ELEMENTWISE, Graph, Node, Rewriter
from ansor.graph.passes.padding import CONVOLUTIONS

Shape = tuple[int, ...]


def pointwise_products(graph: Graph) -> Graph:
    """The graph with products instead of convolutions by constant kernels of a single point."""
    return _Products(graph).run()


class _Products:
    """One run of the pass. rows: arrays of the old graph that have a matrix of rows in the new one, and its name."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.write = Rewriter(graph)
        self.rows: dict[str, str] = {}

    def run(self) -> Graph:
        groups = [group for group in fused(self.graph) if self._is_product(group)]
        moved = {node.name for group in groups for node in group.nodes}
        results = {group.output.name for group in groups}
        for node in self.graph:
            if node.name not in moved:
                self.write.keep(node)
                continue
            self.rows[node.name] = self.write.add(self._as_rows(node))
            if node.name in results:
                self.write.add(Node(node.name, "reshape", (self.rows[node.name],), node.shape, node.dtype))
        return self.write.finished()

    def _is_product(self, group: Group) -> bool:
        """True for a convolution by a point, and elementwise nodes whose operands all have a form beside rows."""
        others = [node for node in group.nodes if node.op not in ELEMENTWISE]
        if len(others) != 1 or not _is_pointwise(self.graph, others[0]):
            return False
        operands = {name for node in group.nodes if node not in others for name in node.inputs}
        return all(_row_form(self.graph.values[name].shape, group.output.shape) is not None for name in operands)

    def _as_rows(self, node: Node) -> Node:
        shape = (prod(node.shape[:-1]), node.shape[-1])
        name = self.write.fresh(f"{node.name}_rows")
        if node.op in ELEMENTWISE:
            return replace(node, name=name, inputs=tuple(self._operand(one, node.shape) for one in node.inputs), shape=shape)
        weight = self.graph.constants[node.inputs[1]].reshape(-1, shape[1]).transpose()
        data = self._operand(node.inputs[0], self.graph.values[node.inputs[0]].shape)
        return Node(name, "dense", (data, self.write.constant(f"{node.name}_weight", weight), *map(self.write.now, node.inputs[2:])), shape, node.dtype)

    def _operand(self, name: str, shape: Shape) -> str:
        """An operand of a node of this shape, in its form beside rows."""
        value = self.graph.values[name]
        wanted = _row_form(value.shape, shape)
        assert wanted is not None, "groups are products only if all operands have a form"
        if value.shape == shape and name in self.rows:
            return self.rows[name]
        made = self.write.reshaped(self.write.now(name), wanted, f"{name}_rows")
        if value.shape == shape:
            self.rows[name] = made
        return made


def _is_pointwise(graph: Graph, node: Node) -> bool:
    if node.op not in CONVOLUTIONS or not node.text("layout").endswith("C") or node.inputs[1] not in graph.constants or node.integer("groups") != 1:
        return False
    kernel = graph.constants[node.inputs[1]].shape[:-2]
    return {*kernel, *node.integers("strides")} == {1} and not any(node.integers("padding"))


def _row_form(operand: Shape, shape: Shape) -> Shape | None:
    """The shape of an operand that is broadcast to `shape`, to be broadcast to the matrix of its rows with the same elements: of all elements, of a single one,
    of one for each channel, or of one for each row. None if there is none."""
    rows, size = prod(shape[:-1]), prod(operand)
    if operand == shape:
        return (rows, shape[-1])
    if size == 1:
        return operand if len(operand) < 2 else (1,)
    if size == operand[-1] == shape[-1]:
        return operand[-1:]
    return (rows, 1) if operand == (*shape[:-1], 1) else None
