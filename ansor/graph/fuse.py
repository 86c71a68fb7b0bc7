"""Groups the nodes that run as one kernel.

    conv2d ─► add ─► relu        becomes one group: one kernel, one buffer
               ▲
           residual

A group is a node that is not elementwise (a convolution, a product, a pool, a softmax, a transposition, …) followed by elementwise nodes of the same shape,
if these are all the readers of its result. Several look-ups (`index`) may be in one group, if it has no other such node: an image enlarged bilinearly is a sum
of four. Elementwise nodes without such a node before them form a group of their own. Other groups read only the last array of a group. Views belong to no
group: they are other names of the same memory. All results of one PyTorch call are one group. Long chains are several groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx

from ansor.graph.ir import ELEMENTWISE, VIEWS, Graph, Node
from ansor.graph.torch_call import TorchCall

SHARING = "index"
"""The operator that may be in a group several times: its elements are read where they are instead of being copied first."""

LARGEST = 128
"""Nodes of a group, at most. A C compiler needs half a minute for a kernel of 128 GELUs, and much more for longer ones."""

_END = "(end)"  # no node has this name: it is not a Python identifier


@dataclass(frozen=True)
class Group:
    """Nodes that run together, in order. `inputs`: arrays they read, in order of first use, including constants; `outputs`: arrays that others read."""

    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def is_torch(self) -> bool:
        """True for a call that runs in PyTorch."""
        return self.nodes[0].op == "torch"

    @property
    def output(self) -> Node:
        """The node that makes a kernel's result."""
        return self.nodes[-1]


def fused(graph: Graph) -> tuple[Group, ...]:
    """The graph's nodes in groups, in execution order.

    A node joins its immediate post-dominator (the first node that all its readers lead to) if all nodes up to there are elementwise and have its shape.
    Data leave such a group through one node only, so groups cannot form a cycle. If two convolutions are added, the addition joins the first operand. By
    convention that is the block, and the second is its shortcut, so blocks form the same groups with and without a convolution in the shortcut. Look-ups that
    are added all join it. A group that would be larger than LARGEST is not made: a long chain is cut.
    """
    flow = _flow(graph)
    dominators = networkx.immediate_dominators(flow.reverse(copy=False), _END)
    by_name = {node.name: node for node in graph}
    members = {node.name: {node.name} for node in graph}  # node -> its group
    for node in _first_operands_first(graph, by_name):
        joined = set().union(*(members[name] for name in (node.name, *_way(node, dominators, flow, by_name))))
        others = [by_name[name].op for name in joined if by_name[name].op not in ELEMENTWISE]
        if len(joined) > LARGEST or (len(others) > 1 and {*others} != {SHARING}):
            continue
        for name in joined:
            members[name] = joined
    return _in_order(graph, members)


def _first_operands_first(graph: Graph, by_name: Mapping[str, Node]) -> list[Node]:
    """The nodes, each after all its operands; the nodes that lead to a first operand come before those that lead to a second."""
    order: dict[str, Node] = {}
    entered: set[str] = set()
    stack = list(reversed(graph.outputs))
    while stack:
        name = stack[-1]
        if name in order or name not in by_name:
            stack.pop()
        elif name in entered:
            order[name] = by_name[name]
            stack.pop()
        else:
            entered.add(name)
            stack.extend(reversed(by_name[name].inputs))
    return list(order.values())


def _flow(graph: Graph) -> networkx.DiGraph:
    """Edges from each node to its readers; `_END` reads what the network returns."""
    flow = networkx.DiGraph()
    flow.add_node(_END)
    made = {node.name for node in graph}
    flow.add_nodes_from(node.name for node in graph)
    flow.add_edges_from((name, node.name) for node in graph for name in node.inputs if name in made)
    flow.add_edges_from((name, _END) for name in graph.outputs if name in made)
    return flow


def _way(node: Node, dominators: Mapping[str, str], flow: networkx.DiGraph, by_name: Mapping[str, Node]) -> list[str]:
    """The nodes from `node`, exclusive, to its post-dominator, inclusive; none if one of them is not elementwise or has another shape."""
    end = dominators[node.name]
    if end == _END or node.op in VIEWS or node.op == "torch":
        return []
    found: dict[str, None] = {}
    open_names = [node.name]
    while open_names:
        for name in flow.successors(open_names.pop()):
            if name in found:
                continue
            if by_name[name].op not in ELEMENTWISE or by_name[name].shape != node.shape:
                return []
            found[name] = None
            if name != end:
                open_names.append(name)
    return list(found)


def _in_order(graph: Graph, members: Mapping[str, set[str]]) -> tuple[Group, ...]:
    groups: dict[object, list[Node]] = {}
    place: dict[object, int] = {}
    for index, node in enumerate(graph):
        if node.op in VIEWS:
            continue
        key: object = id(members[node.name])
        call = node.attributes.get("call")
        if isinstance(call, TorchCall):
            key = call.site
            place.setdefault(key, index)  # its results may be read before the last of them is named
        else:
            place[key] = index
        groups.setdefault(key, []).append(node)
    return tuple(_group(groups[key]) for key in sorted(groups, key=lambda key: place[key]))


def _group(nodes: Sequence[Node]) -> Group:
    own = {node.name for node in nodes}
    inputs = dict.fromkeys(name for node in nodes for name in node.inputs if name not in own)
    outputs = [node.name for node in nodes] if nodes[0].op == "torch" else [nodes[-1].name]
    return Group(tuple(nodes), tuple(inputs), tuple(outputs))
