"""A compiled network: one callable, made of one prepared call for each group, over planned memory.

    network = CompiledNetwork(extracted, kernels)        # kernels[i] computes extracted.tasks[i]
    logits = network(images)                             # torch in, torch out; NumPy in, NumPy out

A call copies the inputs into the arena, makes the prepared calls one after another and copies the outputs out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils import _pytree as pytree

from ansor.errors import ModelError
from ansor.graph.from_torch import Fixed, Signature
from ansor.graph.fuse import Group
from ansor.graph.ir import Array, Graph, Value
from ansor.graph.kernels import GroupKernel
from ansor.graph.memory import ALIGNMENT, Buffer, Plan, planned
from ansor.graph.tasks import ExtractedGraph
from ansor.graph.torch_call import TorchCall
from ansor.text import counted, format_bytes

Step = Callable[[], object]


class CompiledNetwork:
    """Calls like the module it was made from: same arguments, same structure of results. Shapes and dtypes are fixed.

    Calls from several threads take turns. `arena_bytes`: planned memory; `steps`: the name and the prepared call of each group, in order.
    """

    def __init__(self, extracted: ExtractedGraph, kernels: Sequence[GroupKernel]) -> None:
        """`kernels[i]` computes `extracted.tasks[i]`."""
        if len(kernels) != len(extracted.tasks):
            raise ModelError(f"asked to assemble a network of {len(extracted.tasks)} tasks from {len(kernels)} kernels; give one for each task")
        self._call = _CallShape(extracted.signature, extracted.graph)
        self._lock = threading.Lock()
        plan = plan_memory(extracted)
        self.arena_bytes = plan.size
        arrays = _Arrays(extracted.graph, plan)
        workspace = _aligned_bytes(max((kernel.workspace_bytes for kernel in kernels), default=0))
        steps: list[tuple[str, Step]] = []
        for placed in extracted.placed:
            if placed.task is None:
                steps.append((f"torch {_call_of(placed.group)}", _torch_step(placed.group, arrays)))
                continue
            prepared = kernels[placed.task].prepare([arrays[name] for name in placed.arrays], workspace)
            steps.append((extracted.tasks[placed.task].name, prepared))
        self.steps = tuple(steps)
        self._run = tuple(step for _, step in steps)
        self._inputs = [(arrays[name], torch.from_numpy(arrays[name])) for name in extracted.graph.inputs]
        self._outputs = [leaf if isinstance(leaf, Fixed) else arrays[extracted.graph.outputs[leaf]] for leaf in extracted.signature.output_leaves]
        arrays.release_constants()
        self._keep = (arrays, workspace)  # prepared calls may hold bare addresses of the arena

    def __repr__(self) -> str:
        torch_steps = sum(name.startswith("torch ") for name, _ in self.steps)
        inputs = ", ".join(f"{tensor.dtype}{list(tensor.shape)}".removeprefix("torch.") for _, tensor in self._inputs)
        outputs = ", ".join(f"{one.dtype}{list(one.shape)}" for one in self._outputs if not isinstance(one, Fixed))
        steps = f"{counted(len(self.steps), 'step')}, {torch_steps} of them in PyTorch"
        return f"CompiledNetwork({inputs} -> {outputs}; {steps}; {format_bytes(self.arena_bytes)} of memory)"

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Raises ModelError, naming the argument, for anything but arrays of the shapes and dtypes the network was compiled for."""
        leaves = self._call.arrays_of(args, kwargs)
        as_torch = not leaves or any(isinstance(leaf, torch.Tensor) for leaf in leaves)
        with self._lock:
            for (array, tensor), leaf in zip(self._inputs, leaves, strict=True):
                if isinstance(leaf, torch.Tensor):
                    tensor.copy_(leaf.detach())
                else:
                    np.copyto(array, leaf)
            for step in self._run:
                step()
            results = [one.value if isinstance(one, Fixed) else _copied(one, as_torch) for one in self._outputs]
        return self._call.results_from(results)


def _copied(array: Array, as_torch: bool) -> object:
    return torch.from_numpy(array.copy()) if as_torch else array.copy()


class _CallShape:
    """Turns a call's arguments into the arrays the graph wants, checked, and arrays into results."""

    def __init__(self, signature: Signature, graph: Graph) -> None:
        self._signature = signature
        self._wanted = [graph.inputs[leaf] if isinstance(leaf, str) else leaf for leaf in signature.input_leaves]
        self._names = [leaf if isinstance(leaf, str) else "" for leaf in signature.input_leaves]
        positional = pytree.tree_unflatten(list(range(len(self._wanted))), signature.input_tree)
        # the usual call, f(x, y), needs no unpacking of nested structures
        self._flat = positional == (tuple(range(len(self._wanted))), {}) and not any(isinstance(one, Fixed) for one in self._wanted)
        self._keywords = list(positional[1])
        self._single = signature.output_tree.is_leaf()

    def arrays_of(self, args: tuple[object, ...], kwargs: dict[str, object]) -> list[Array | torch.Tensor]:
        leaves: Sequence[object] = args
        if not self._flat or kwargs or len(args) != len(self._wanted):
            leaves = self._flattened(args, kwargs)
        found: list[Array | torch.Tensor] = []
        for leaf, wanted, name in zip(leaves, self._wanted, self._names, strict=True):
            if isinstance(wanted, Value):
                found.append(_checked(leaf, wanted, name))
            elif leaf != wanted.value:
                raise ModelError(f"the network was called with {leaf!r} where it was compiled with {wanted.value!r}; compile it again for the other value")
        return found

    def _flattened(self, args: tuple[object, ...], kwargs: dict[str, object]) -> list[object]:
        if set(kwargs) == set(self._keywords):
            kwargs = {key: kwargs[key] for key in self._keywords}
        leaves, tree = pytree.tree_flatten((args, kwargs))
        if tree != self._signature.input_tree:
            inputs = ", ".join(f"{name} {_described(wanted)}" for name, wanted in zip(self._names, self._wanted, strict=True) if isinstance(wanted, Value))
            named = f" and keywords {sorted(kwargs)}" if kwargs else ""
            raise ModelError(
                f"the network was called with {len(args)} positional arguments{named}, whose structure is not the one it was compiled for; "
                f"call it as the model was called then, with {inputs}"
            )
        return list(leaves)

    def results_from(self, results: list[object]) -> object:
        return results[0] if self._single else pytree.tree_unflatten(results, self._signature.output_tree)


def _described(value: Value) -> str:
    return f"{value.dtype} of shape {value.shape}"


def _checked(leaf: object, wanted: Value, name: str) -> Array | torch.Tensor:
    if not isinstance(leaf, (torch.Tensor, np.ndarray)):
        raise ModelError(f"the network was called with a {type(leaf).__name__} as {name}; give a torch tensor or a NumPy array of {_described(wanted)}")
    dtype = str(leaf.dtype).removeprefix("torch.")
    if tuple(leaf.shape) != wanted.shape or dtype != wanted.dtype:
        found = _described(Value(tuple(leaf.shape), dtype))
        raise ModelError(f"the network was called with {name} being {found}; it was compiled for {_described(wanted)}: convert the input, or compile again")
    return leaf


def plan_memory(extracted: ExtractedGraph) -> Plan:
    """Where each array of the network lies. Inputs are there from the first step on, outputs until the last."""
    graph = extracted.graph
    roots = _roots(graph)
    end = len(extracted.placed)
    first = {name: 0 for name in graph.inputs}
    last = dict(first)
    for step, placed in enumerate(extracted.placed):
        for name in placed.group.outputs:
            first[name] = last[name] = step
        for name in placed.group.inputs:
            last[roots[name]] = step
    for name in graph.outputs:
        last[roots[name]] = end
    return planned(Buffer(name, _bytes(graph.value(name)), start, last[name]) for name, start in first.items())


def _roots(graph: Graph) -> dict[str, str]:
    """The array whose memory each array lies in: itself, or what it is a reshape of."""
    roots = {name: name for name in graph.values}
    for node in graph:
        if node.op == "reshape":
            roots[node.name] = roots[node.inputs[0]]
    return roots


def _bytes(value: Value) -> int:
    return value.size * np.dtype(value.dtype).itemsize


class _Arrays:
    """Every array of a graph as a view of the arena; constants as aligned copies, made when first asked for."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self._graph, self._plan, self._roots = graph, plan, _roots(graph)
        self._arena = _aligned_bytes(plan.size)
        self._constants: dict[str, Array] = {}

    def release_constants(self) -> None:
        """Forgets the constants: whoever needs one holds it, and packed ones are not needed as they were."""
        self._constants.clear()

    def __getitem__(self, name: str) -> Array:
        value, root = self._graph.value(name), self._roots[name]
        if root in self._graph.constants:
            if root not in self._constants:
                self._constants[root] = _aligned_copy(self._graph.constants[root])
            return self._constants[root].reshape(value.shape)
        begin = self._plan.offsets[root]
        return self._arena[begin : begin + _bytes(value)].view(value.dtype).reshape(value.shape)


def _aligned_bytes(size: int) -> NDArray[np.uint8]:
    memory = np.zeros(size + ALIGNMENT, dtype=np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + size]


def _aligned_copy(array: Array) -> Array:
    memory = _aligned_bytes(array.nbytes).view(array.dtype).reshape(array.shape)
    np.copyto(memory, array)
    return memory


def _call_of(group: Group) -> TorchCall:
    call = group.nodes[0].attributes["call"]
    assert isinstance(call, TorchCall)
    return call


def _torch_step(group: Group, arrays: _Arrays) -> Step:
    call = _call_of(group)
    inputs = [torch.from_numpy(arrays[name]) for name in group.nodes[0].inputs]
    targets: Mapping[int, torch.Tensor] = {node.integer("index"): torch.from_numpy(arrays[node.name]) for node in group.nodes}

    def run() -> None:
        with torch.no_grad():
            results = call(inputs)
            for index, target in targets.items():
                result = results[index]
                assert isinstance(result, torch.Tensor)
                target.copy_(result)

    return run
