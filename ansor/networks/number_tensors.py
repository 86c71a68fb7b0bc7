"""Numbers that Dynamo puts into tensors.

With `dynamic=True`, or once a float has had a second value, a graph takes a module's floats, such as the epsilon of a norm, as tensors without dimensions,
and reads them with `item()`. `torch.export` does not know the values of such numbers, and cannot export what depends on them.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node


def with_numbers(graph: GraphModule) -> tuple[GraphModule, frozenset[int]]:
    """A graph of Dynamo, changed to take numbers instead of the tensors that hold them, and the places of these arguments. The given graph stays as it is; both
    share modules."""
    places = [place for place, node in enumerate(_placeholders(graph)) if _holds_number(node)]
    if not places:
        return graph, frozenset()
    changed = GraphModule(graph, copy.deepcopy(graph.graph))
    nodes = _placeholders(changed)
    for place in places:
        for read in tuple(nodes[place].users):
            read.replace_all_uses_with(nodes[place])
            changed.graph.erase_node(read)
    changed.recompile()
    return changed, frozenset(places)


def as_numbers(given: Sequence[Any], places: frozenset[int]) -> tuple[Any, ...]:
    """The arguments of a call, with numbers instead of tensors at some places."""
    return tuple(one.item() if place in places and isinstance(one, torch.Tensor) else one for place, one in enumerate(given))


def _placeholders(graph: GraphModule) -> list[Node]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]


def _holds_number(node: Node) -> bool:
    made_by_dynamo = getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False)
    reads = [(user.op, user.target, user.args, user.kwargs) for user in node.users]
    return bool(made_by_dynamo and reads) and all(read == ("call_method", "item", (node,), {}) for read in reads)
