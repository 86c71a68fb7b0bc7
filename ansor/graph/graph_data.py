"""Converts a network that is divided into tasks to JSON and back, without its constants and the declarations of its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ansor.graph.from_torch import Fixed, Signature
from ansor.graph.fuse import Group
from ansor.graph.ir import Array, Graph, Node, Value
from ansor.graph.tasks import ExtractedGraph, NetworkTask, Placed
from ansor.graph.torch_call import Slot, TorchCall

Data = dict[str, Any]  # JSON


def to_data(extracted: ExtractedGraph) -> Data:
    """The network as JSON. Raises TypeError for anything without a form in JSON, such as constants that NumPy cannot hold."""
    signature = extracted.signature
    return {
        **steps_data(extracted),
        "trees": [pytree.treespec_dumps(tree) for tree in (signature.input_tree, signature.output_tree)],
        "leaves": [_encoded(signature.input_leaves), _encoded(signature.output_leaves)],
    }


def steps_data(extracted: ExtractedGraph) -> Data:
    """What the network computes, and in which groups, without its call signature. Raises TypeError as `to_data` does."""
    graph = extracted.graph
    return {
        "inputs": [[name, *_value_data(value)] for name, value in graph.inputs.items()],
        "nodes": [_node_data(node) for node in graph.nodes],
        "outputs": list(graph.outputs),
        "placed": [[[n.name for n in one.group.nodes], one.group.inputs, one.group.outputs, one.task, one.arrays] for one in extracted.placed],
        "tasks": [[task.weight, task.name, task.key] for task in extracted.tasks],
        "torch_calls": dict(extracted.torch_calls),
    }


def of_data(data: Data, constants: Mapping[str, Array]) -> ExtractedGraph:
    """The network of such data, with its constants. It has no example inputs, watches no weights, and is called by position."""
    nodes = {one[0]: _node(one) for one in data["nodes"]}
    inputs = {name: Value(tuple(shape), dtype) for name, shape, dtype in data["inputs"]}
    graph = Graph(inputs, constants, tuple(nodes.values()), tuple(data["outputs"]))
    given, made = (pytree.treespec_loads(text) for text in data["trees"])
    signature = Signature(given, _decoded(data["leaves"][0]), made, _decoded(data["leaves"][1]))
    placed = tuple(
        Placed(Group(tuple(nodes[name] for name in names), tuple(read), tuple(written)), task, tuple(arrays))
        for names, read, written, task, arrays in data["placed"]
    )
    tasks = tuple(NetworkTask(tuple, weight, name, key) for weight, name, key in data["tasks"])
    return ExtractedGraph(graph, signature, placed, tasks, data["torch_calls"])


def _value_data(value: Value | Node) -> list[object]:
    return [list(value.shape), value.dtype]


def _node_data(node: Node) -> list[object]:
    return [node.name, node.op, list(node.inputs), *_value_data(node), {key: _encoded(one) for key, one in node.attributes.items()}]


def _node(data: list[Any]) -> Node:
    name, op, inputs, shape, dtype, attributes = data
    return Node(name, op, tuple(inputs), tuple(shape), dtype, {key: _decoded(one) for key, one in attributes.items()})


_NAMED = {"dtype": torch.dtype, "layout": torch.layout, "memory_format": torch.memory_format}


def _encoded(value: object) -> object:
    """Plain values as they are; others as an object with one key."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is tuple:
        return {"tuple": [_encoded(one) for one in value]}
    if isinstance(value, Slot):
        return {"slot": value.index}
    if isinstance(value, Fixed):
        return {"fixed": _encoded(value.value)}
    if isinstance(value, TorchCall):
        return {"call": [value.site, value.operator, _encoded(value.arguments), _encoded(value.keywords)]}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    for word, kind in _NAMED.items():
        if isinstance(value, kind):
            return {word: str(value).removeprefix("torch.")}
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def _decoded(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    ((word, held),) = data.items()
    if word == "tuple":
        return tuple(map(_decoded, held))
    if word == "slot":
        return Slot(held)
    if word == "fixed":
        return Fixed(_decoded(held))
    if word == "call":
        return TorchCall(held[0], held[1], _decoded(held[2]), _decoded(held[3]))
    return torch.device(held) if word == "device" else getattr(torch, held)
