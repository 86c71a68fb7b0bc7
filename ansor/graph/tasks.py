"""The tuning tasks of a network: one for each distinct group, weighted by how often the network runs it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import cast

from ansor import te
from ansor.graph.declare import declare
from ansor.graph.export import CallArguments, ExampleInputs, Report
from ansor.graph.from_torch import Signature, from_torch
from ansor.graph.fuse import Group, fused
from ansor.graph.ir import Graph, Node, unused
from ansor.graph.passes.pipeline import optimised
from ansor.graph.shared_constants import SharedConstants
from ansor.graph.weights import WatchedWeights
from ansor.onnx.module import read_onnx
from ansor.support.garbage import uncollected
from ansor.te.tensor import Tensor


@dataclass(frozen=True)
class NetworkTask:
    """A kernel that the network needs. `declare`: makes its declaration; `weight`: uses in one run of the network; `name`: readable, unique.

    `key` identifies the computation: equal for equal groups, in any process.
    """

    declare: Callable[[], tuple[Tensor, ...]] = field(repr=False, compare=False)
    weight: int
    name: str
    key: str

    @cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """Its declaration, placeholders first; made on first use."""
        return self.declare()


@dataclass(frozen=True)
class Placed:
    """A group in the network. `task`: its number among the tasks, None if PyTorch runs it; `arrays`: the graph's names of its task's tensors."""

    group: Group
    task: int | None
    arrays: tuple[str, ...]


@dataclass(frozen=True)
class ExtractedGraph:
    """A network divided into tasks: the optimised graph, how it is called, and its groups in the order they run.

    `torch_calls`: the operators that PyTorch runs, each with the reason. `examples`: the call it was read with, None if there was none;
    `watched`: the weights of the module, which may change; None if it is not a module. `shared`: constants of other networks, to be used instead of equal ones;
    None: all constants are the network's own.
    """

    graph: Graph
    signature: Signature
    placed: tuple[Placed, ...]
    tasks: tuple[NetworkTask, ...]
    torch_calls: Mapping[str, str]
    examples: CallArguments | None = None
    watched: WatchedWeights | None = None
    shared: SharedConstants | None = None

    @property
    def weights(self) -> tuple[int, ...]:
        """How often one run of the network uses each task."""
        return tuple(task.weight for task in self.tasks)

    def __str__(self) -> str:
        lines = [f"{task.weight:3d} x {task.name}" for task in self.tasks]
        return "\n".join([*lines, *(f"in PyTorch: {operator} ({reason})" for operator, reason in self.torch_calls.items())])


def extract(model: object, example_inputs: ExampleInputs = (), report: Report | None = None, *, borrowed: bool = False) -> ExtractedGraph:
    """Divide a PyTorch model, or the float ONNX file at a path, into tasks; arguments as for `from_torch`. Raises ModelError if it cannot be read.

    An `ExtractedGraph` is returned as it is.
    """
    if isinstance(model, ExtractedGraph):
        return model
    if isinstance(model, (str, Path)):
        model, inputs = read_onnx(model, example_inputs)
        example_inputs = cast(ExampleInputs, inputs)
    with uncollected():
        read = from_torch(model, example_inputs, report, borrowed=borrowed)
        graph = optimised(read.graph)
        placed, tasks = _divided(graph)
        return ExtractedGraph(graph, read.signature, placed, tasks, read.torch_calls, read.examples, read.watched)


def with_graph(extracted: ExtractedGraph, graph: Graph) -> ExtractedGraph:
    """The network divided into tasks again, after a change to its graph that leaves its inputs and outputs as they are."""
    placed, tasks = _divided(graph)
    return replace(extracted, graph=graph, placed=placed, tasks=tasks)


def _divided(graph: Graph) -> tuple[tuple[Placed, ...], tuple[NetworkTask, ...]]:
    placed: list[Placed] = []
    numbers: dict[str, int] = {}
    groups: list[list[Group]] = []
    for group in fused(graph):
        if group.is_torch:
            placed.append(Placed(group, None, (*group.inputs, *group.outputs)))
            continue
        key = structural_key(graph, group)
        if key not in numbers:
            numbers[key] = len(groups)
            groups.append([])
        groups[numbers[key]].append(group)
        placed.append(Placed(group, numbers[key], (*group.inputs, group.output.name)))
    names = _unique([task_name(graph, uses[0]) for uses in groups])
    tasks = [NetworkTask(partial(declaration, graph, groups[i][0]), len(groups[i]), names[i], key) for key, i in numbers.items()]
    return tuple(placed), tuple(tasks)


NAMED = 15
"""The most nodes after the first that a name of a task tells."""

_ROLES = {"dense": ("data", "weight", "bias"), "integer_dense": ("data", "weight", "offsets", "scales", "bias"), "batch_matmul": ("left", "right"),
          "layer_norm": ("data", "scale", "shift"), "embedding": ("weight", "indices")}


def declaration(graph: Graph, group: Group) -> tuple[Tensor, ...]:
    """A group's declaration: a placeholder for each input of the group, in order, then the result. Constants of the graph are constant placeholders."""
    names = _placeholder_names(group)
    tensors: dict[str, Tensor] = {}
    for array in group.inputs:
        value = graph.value(array)
        tensors[array] = te.placeholder(value.shape, value.dtype, names[array], constant=array in graph.constants)
    taken = set(names.values())
    for node in group.nodes:
        name = unused(node.op, taken)
        taken.add(name)
        tensors[node.name] = declare(node, [tensors[array] for array in node.inputs], name)
    return tuple(tensors[array] for array in (*group.inputs, group.output.name))


def _placeholder_names(group: Group) -> dict[str, str]:
    """Readable names of the group's inputs: by their role in its first node, else `operand1`, …"""
    first = group.nodes[0]
    roles = _ROLES.get(first.op, ("data", "weight", "bias") if first.op.startswith("conv") else ("data",))
    named = dict(zip(first.inputs, roles, strict=False))
    return {array: named.get(array, f"operand{index}") for index, array in enumerate(group.inputs)}


def structural_key(graph: Graph, group: Group) -> str:
    """Identifies what a group computes: its operators, attributes, shapes, dtypes and which inputs are constants; names do not matter."""
    number = {name: index for index, name in enumerate(group.inputs)}
    inputs = [[*_described(graph.value(name).shape, graph.value(name).dtype), name in graph.constants] for name in group.inputs]
    nodes = []
    for node in group.nodes:
        attributes = sorted((key, repr(value)) for key, value in node.attributes.items())
        nodes.append([node.op, [number[name] for name in node.inputs], attributes, *_described(node.shape, node.dtype)])
        number[node.name] = len(number)
    return hashlib.sha256(json.dumps([inputs, nodes]).encode()).hexdigest()[:16]


def _described(shape: tuple[int, ...], dtype: str) -> list[object]:
    return [list(shape), dtype]


def task_name(graph: Graph, group: Group) -> str:
    """Such as conv2d_3x3_64_64_56x56_bias_add_relu: kernel, input and output channels, output size, then what is fused; of long chains, the beginning."""
    first, *rest = group.nodes
    more = [f"and_{len(rest) - NAMED}_more"] if len(rest) > NAMED else []
    return "_".join([_head(graph, first), *(node.op for node in rest[:NAMED]), *more])


def _head(graph: Graph, node: Node) -> str:
    if node.op.startswith("conv"):
        return _convolution_name(graph, node)
    given = graph.value(node.inputs[0]).shape
    if node.op in ("dense", "integer_dense"):
        bias = ["bias"] if len(node.inputs) in (3, 5) else []
        return "_".join([f"{node.op}_{given[0]}x{given[1]}x{node.shape[1]}", *bias])
    if node.op == "batch_matmul":
        return f"batch_matmul_{given[0]}x{given[1]}x{given[2]}x{node.shape[2]}"
    if node.op.startswith("pool"):
        channels, spatial = _split_shape(node)
        return "_".join([f"{node.text('kind')}_{node.op}", _by(node.integers("kernel")), str(channels), _by(spatial), *_strided(node)])
    return "_".join([node.op, _by(given) or "scalar"])


def _convolution_name(graph: Graph, node: Node) -> str:
    weight = graph.value(node.inputs[1]).shape
    last = node.text("layout").endswith("C")
    kernel = weight[:-2] if last else weight[2:]
    channels, spatial = _split_shape(node)
    given = graph.value(node.inputs[0]).shape[-1 if last else 1]
    groups = node.integer("groups")
    depthwise = groups > 1 and groups == given == channels
    parts = [f"depthwise_{node.op}" if depthwise else node.op, _by(kernel), str(given)]
    parts += [] if depthwise else [str(channels)]
    parts += [_by(spatial), *_strided(node)]
    parts += [f"g{groups}"] if groups > 1 and not depthwise else []
    return "_".join(parts + (["bias"] if len(node.inputs) > 2 else []))


def _split_shape(node: Node) -> tuple[int, tuple[int, ...]]:
    """Channels and spatial extents of a node with a layout."""
    return (node.shape[-1], node.shape[1:-1]) if node.text("layout").endswith("C") else (node.shape[1], node.shape[2:])


def _strided(node: Node) -> list[str]:
    strides = node.integers("strides")
    return [] if set(strides) == {1} else ["s" + (str(strides[0]) if len(set(strides)) == 1 else _by(strides))]


def _by(extents: tuple[int, ...]) -> str:
    return "x".join(map(str, extents))


def _unique(names: list[str]) -> list[str]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return result
