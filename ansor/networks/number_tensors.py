"""Numbers that Dynamo puts into tensors.

With `dynamic=True`, a graph takes a module's floats, such as the epsilon of a norm, as tensors without dimensions, and reads them with `item()`. `torch.export`
does not know the values of such numbers, and cannot export what depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node


def take_numbers(graph: GraphModule) -> frozenset[int]:
    """Change a graph of Dynamo to take these numbers as they are. Returns the places of the arguments."""
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
    found = {place: node for place, node in enumerate(nodes) if _holds_number(node)}
    for node in found.values():
        for read in tuple(node.users):
            read.replace_all_uses_with(node)
            graph.graph.erase_node(read)
    if found:
        graph.recompile()
    return frozenset(found)


def as_numbers(given: Sequence[Any], places: frozenset[int]) -> tuple[Any, ...]:
    """The arguments of a call, with numbers instead of tensors at some places."""
    return tuple(one.item() if place in places and isinstance(one, torch.Tensor) else one for place, one in enumerate(given))


def _holds_number(node: Node) -> bool:
    made_by_dynamo = getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False)
    return bool(made_by_dynamo) and all((user.op, user.target, user.args, user.kwargs) == ("call_method", "item", (node,), {}) for user in node.users)
