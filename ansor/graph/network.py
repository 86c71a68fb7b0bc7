"""A compiled network: one callable, made of one prepared call for each group, over planned memory.

    network = CompiledNetwork(extracted, kernels)        # kernels[i] computes extracted.tasks[i]
    logits = network(images)                             # torch in, torch out; NumPy in, NumPy out

A call copies the inputs into the arena, makes the prepared calls one after another and copies the outputs out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np
import torch

from ansor.errors import ModelError
from ansor.graph.call_shape import CallShape
from ansor.graph.dtypes import in_memory
from ansor.graph.export import CallArguments, ExampleInputs, split_inputs
from ansor.graph.from_torch import Fixed
from ansor.graph.fuse import Group
from ansor.graph.indices import IndexCheck, index_checks
from ansor.graph.ir import Array, Graph, Value
from ansor.graph.kernels import GroupKernel
from ansor.graph.memory import ALIGNMENT, Buffer, Plan, planned
from ansor.graph.network_memory import NetworkMemory
from ansor.graph.row_parts import Stretch
from ansor.graph.tasks import ExtractedGraph, Placed
from ansor.graph.torch_call import TorchCall
from ansor.support.bfloat16 import tensor_of
from ansor.support.forked import Locked
from ansor.support.html_text import table
from ansor.support.notices import warn
from ansor.support.settings import cores
from ansor.support.text import counted, format_bytes

Step = Callable[[], object]
_AS_IT_IS = nullcontext()


class Writer(Protocol):
    """Writes a network to a folder."""

    def save(self, network: CompiledNetwork, folder: Path) -> None:
        """See `CompiledNetwork.save`."""

    def export(self, network: CompiledNetwork, folder: Path, examples: CallArguments | None, embed: bool) -> None:
        """See `CompiledNetwork.export`."""


class CompiledNetwork(Locked):
    """Calls like the module it was made from: same arguments, same structure of results. Shapes and dtypes are fixed.

    Calls from several threads take turns. `arena_bytes`: planned memory; `steps`: the name and the prepared call of each group, in order;
    `kernels`: those of the tasks; `constants`: the large ones, if other networks may share them; `torch_calls`: the operators that PyTorch runs, each with the
    reason; `stretch`: the groups of the model that are computed for a few rows of the batch at a time, None if there are none.
    """

    def __init__(self, extracted: ExtractedGraph, kernels: Sequence[GroupKernel]) -> None:
        """`kernels[i]` computes `extracted.tasks[i]`."""
        if len(kernels) != len(extracted.tasks):
            raise ModelError(f"asked to assemble a network of {len(extracted.tasks)} tasks from {len(kernels)} kernels; give one for each task")
        self._call = CallShape(extracted.signature, extracted.graph)
        super().__init__()
        plan = plan_memory(extracted)
        self.arena_bytes = plan.size
        memory = NetworkMemory(max((kernel.workspace_bytes for kernel in kernels), default=0), extracted.shared)
        arrays = _Arrays(extracted.graph, plan, memory)
        self.steps = tuple(_steps(extracted, kernels, arrays, memory))
        self._run = tuple(step for _, step in self.steps)
        self._inputs = [_place(name, arrays) for name in extracted.graph.inputs]
        outputs = extracted.graph.outputs
        self._outputs = [leaf if isinstance(leaf, Fixed) else _place(outputs[leaf], arrays) for leaf in extracted.signature.output_leaves]
        self._loose = list(arrays.loose.values())
        self._watched, self.torch_calls = extracted.watched, extracted.torch_calls
        self._gradients_said = self._running = False
        self._input_names = tuple(extracted.graph.inputs)
        self.writer: Writer | None = None
        self.stretch: Stretch | None = None
        self.kernels = tuple(kernels)
        self._arena, self._workspace = arrays.arena, memory.workspace  # prepared calls may hold bare addresses of them
        self.constants = tuple(memory.constants)

    def __repr__(self) -> str:
        torch_steps = sum(name.startswith("torch ") for name, _ in self.steps)
        inputs = ", ".join(f"{one.value.dtype}{list(one.value.shape)}" for one in self._inputs)
        outputs = ", ".join(f"{one.value.dtype}{list(one.value.shape)}" for one in self._outputs if not isinstance(one, Fixed))
        steps = f"{counted(len(self.steps), 'step')}, {torch_steps} of them in PyTorch"
        return f"CompiledNetwork({inputs} -> {outputs}; {steps}; {format_bytes(self.arena_bytes)} of memory)"

    def _repr_html_(self) -> str:
        steps = Counter(name for name, _ in self.steps).items()
        rows = [(name, times, "PyTorch" if name.startswith("torch ") else "a kernel") for name, times in steps]
        return table(repr(self), ("step", "times", "runs in"), rows)

    def __reduce__(self) -> NoReturn:
        raise ModelError("asked to copy or pickle a compiled network, which is bound to memory of this process; call it from several threads, or compile the "
                         "model again where it is needed: with records=, nothing is measured twice")  # fmt: skip

    def save(self, folder: str | Path) -> Path:
        """Write the network to a folder, for `ansor.load`: the plan, the kernels as C and as a library, and the constants.

        Raises ModelError if steps run in PyTorch or results cannot be described without it, and MeasureError if the folder cannot be written to.
        """
        self._writer().save(self, Path(folder))
        return Path(folder)

    def export(self, folder: str | Path, example_inputs: ExampleInputs | None = None, *, embed: bool = False) -> Path:
        """Write the network as self-contained C: a header, the kernels, the constants, a self-test and CMakeLists.txt.

        example_inputs: for the self-test; made up if None. embed: store constants as a C array, not as a file. Raises the errors of `save`. The kernels are for
        the processor of this network; `ansor.export` writes kernels for several.
        """
        examples = None if example_inputs is None else split_inputs(example_inputs)
        self._writer().export(self, Path(folder), examples, embed)
        return Path(folder)

    def _writer(self) -> Writer:
        if self.writer is None:
            raise ModelError("asked to save a network that was assembled from kernels, whose C source is not known; save one that ansor.compile returned")
        return self.writer

    def run_by(self, joined: Callable[[Sequence[Step]], Sequence[Step]]) -> None:
        """Make calls run the steps that `joined` returns for the current ones. `steps` does not change."""
        self._run = tuple(joined(self._run))

    @property
    def runs(self) -> tuple[Step, ...]:
        """What a call runs, in order: the steps, or several of them as one."""
        return self._run

    def layout(self) -> Layout:
        """The network's arrays, as views of the memory that the prepared calls read and write."""
        inputs = [(name, one.array if isinstance(one, _Planned) else None) for name, one in zip(self._input_names, self._inputs, strict=True)]
        outputs = [one.value if isinstance(one, Fixed) else one.array if isinstance(one, _Planned) else None for one in self._outputs]
        return Layout(self._arena, inputs, self._call.opened_results(outputs))

    def fill(self, examples: CallArguments | None) -> None:
        """Copy the inputs of a call to where the steps read them, so that steps can be run one by one. Without inputs, copy zeros, which are valid indices."""
        leaves = self._call.arrays_of(*examples) if examples is not None else [np.zeros((), bool)] * len(self._inputs)
        for place, leaf in zip(self._inputs, leaves, strict=True):
            place.put(leaf.detach() if isinstance(leaf, torch.Tensor) else leaf)

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Raises ModelError, naming the argument, for anything but arrays of the shapes and dtypes the network was compiled for, and OutOfRangeError, an
        IndexError, for indices outside the table that they look up."""
        return self.called(args, kwargs, _in_order)

    def called(self, args: tuple[object, ...], kwargs: dict[str, object], run: Callable[[Sequence[Step]], None]) -> object:
        """Like a call, but `run` is given `runs` and must run each of them once, in order; for timing. Raises what a call raises."""
        leaves = self._call.arrays_of(args, kwargs)
        if self._watched is not None:
            change = self._watched.change()
            if change is not None:
                warn(change)
        as_torch = not leaves or any(isinstance(leaf, torch.Tensor) for leaf in leaves)
        # PyTorch's own threads do not survive a fork, and PyTorch would wait for them. On one thread it does not need them.
        with self.lock, torch_threads(1) if self.forked else _AS_IT_IS:
            if self._running:
                raise ModelError("asked to call a network while it is running, from a finalizer or a signal handler; call it afterwards")
            self._running = True
            try:
                for place, leaf in zip(self._inputs, leaves, strict=True):
                    if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
                        self._say_gradients()
                        leaf = leaf.detach()
                    place.put(leaf)
                run(self._run)
                results = [one.value if isinstance(one, Fixed) else one.taken(as_torch) for one in self._outputs]
            finally:
                for loose in self._loose:  # also after an index out of range: a call leaves nothing behind
                    loose.clear()
                self._running = False
        return self._call.results_from(results)

    def after_fork(self) -> None:
        """Forget the calls of other threads: these threads do not exist in a forked child."""
        self._running = False

    def _say_gradients(self) -> None:
        """Warn once, if PyTorch would have tracked gradients."""
        if not self._gradients_said and torch.is_grad_enabled():
            self._gradients_said = True
            warn("an input requires gradients, but a compiled network computes none: its results do not require them; call it under torch.no_grad()")


def _in_order(steps: Sequence[Step]) -> None:
    for step in steps:
        step()


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Run PyTorch's kernels on this many threads inside the `with` block."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Planned:
    """An input or output in the planned memory."""

    def __init__(self, value: Value, array: Array) -> None:
        self.value, self.array, self._tensor = value, array, tensor_of(array)

    def put(self, leaf: Array | torch.Tensor) -> None:
        if isinstance(leaf, torch.Tensor):
            self._tensor.copy_(leaf)
        else:
            np.copyto(self.array, leaf)

    def taken(self, as_torch: bool) -> object:
        """A copy."""
        return tensor_of(self.array.copy()) if as_torch else self.array.copy()


class Loose:
    """A value that NumPy cannot hold (float8, for example): a PyTorch tensor, held from the step that makes it to the end of the call."""

    def __init__(self, value: Value) -> None:
        self.value = value
        self._tensor: torch.Tensor | None = None

    def put(self, leaf: Array | torch.Tensor) -> None:
        self._tensor = leaf if isinstance(leaf, torch.Tensor) else torch.zeros(self.value.shape, dtype=getattr(torch, self.value.dtype.split()[-1]))

    @property
    def held(self) -> torch.Tensor:
        """The tensor of this call."""
        assert self._tensor is not None
        return self._tensor

    def taken(self, as_torch: bool) -> object:
        """A copy, always a tensor."""
        return self.held.clone()

    def clear(self) -> None:
        """Release the tensor."""
        self._tensor = None


def _place(name: str, arrays: _Arrays) -> _Planned | Loose:
    return arrays.loose[name] if name in arrays.loose else _Planned(arrays.value(name), arrays[name])


@dataclass(frozen=True, eq=False)
class CheckedStep:
    """A step that first checks the indices that it reads."""

    checks: Sequence[IndexCheck]
    step: Step

    def __call__(self) -> None:
        for check in self.checks:
            check()
        self.step()


@dataclass(frozen=True, eq=False)
class Layout:
    """Where a network's arrays are. `results`: the outputs, nested as the model nests them, with objects opened. None stands for what NumPy cannot hold."""

    arena: Array
    inputs: Sequence[tuple[str, Array | None]]
    results: object


def plan_memory(extracted: ExtractedGraph) -> Plan:
    """The offset of each array of the network. Inputs are alive from the first step on, outputs until after the last."""
    graph = extracted.graph
    roots = {name: root for name, (root, _) in storage(graph).items()}
    end = len(extracted.placed)
    first = {name: 0 for name in graph.inputs}
    last = dict(first)
    for step, placed in enumerate(extracted.placed):
        for name in placed.group.outputs:
            first.setdefault(roots[name], step)
            last[roots[name]] = step
        for name in placed.group.inputs:
            last[roots[name]] = step
    for name in graph.outputs:
        last[roots[name]] = end
    return planned(Buffer(name, _bytes(graph.value(name)), start, last[name]) for name, start in first.items() if in_memory(graph.value(name).dtype))


def storage(graph: Graph) -> dict[str, tuple[str, int]]:
    """For each array, the array whose memory it uses, which may be itself, and where it begins there, in bytes."""
    found = {name: (name, 0) for name in graph.values}
    for node in reversed(graph.nodes):  # what is joined is made before the join, and a view after what it shows
        if node.op == "join":
            root, begin = found[node.name]
            for name in node.inputs:
                found[name] = root, begin
                begin += _bytes(graph.value(name))
    for node in graph:
        if node.op in ("reshape", "rows"):
            root, begin = found[node.inputs[0]]
            skipped = node.integer("start") * _bytes(Value(node.shape[1:], node.dtype)) if node.op == "rows" else 0
            found[node.name] = root, begin + skipped
    return found


def _bytes(value: Value) -> int:
    return value.size * np.dtype(value.dtype).itemsize


class _Arrays:
    """Every array of a graph as a view of the arena; constants as aligned copies, made on first use. `loose`: the values that NumPy cannot hold.

    It is dropped once the network is made: kernels hold the constants that they need, and packed ones are not needed in their original form.
    """

    def __init__(self, graph: Graph, plan: Plan, memory: NetworkMemory) -> None:
        self._graph, self._plan, self._storage, self._memory = graph, plan, storage(graph), memory
        self.arena = memory.zeros((plan.size,), "uint8")
        self._constants: dict[str, Array] = {}
        self.loose = {name: Loose(value) for name, value in graph.values.items() if not in_memory(value.dtype)}

    def value(self, name: str) -> Value:
        """Shape and dtype of an array."""
        return self._graph.value(name)

    def __getitem__(self, name: str) -> Array:
        value, (root, skipped) = self._graph.value(name), self._storage[name]
        if root in self._graph.constants:
            if root not in self._constants:
                for job in self.place_constants([name]):
                    job.work()
            return self._constants[root].reshape(value.shape)
        begin = self._plan.offsets[root] + skipped
        return self.arena[begin : begin + _bytes(value)].view(value.dtype).reshape(value.shape)

    def place_constants(self, names: Iterable[str]) -> list[_Job]:
        """Makes room for aligned copies of all constants among these arrays. The jobs copy them."""
        roots = [root for root in dict.fromkeys(self._storage[name][0] for name in names) if root in self._graph.constants]
        given = {root: self._graph.constants[root] for root in roots}
        shared = {root: found for root, array in given.items() if (found := self._memory.found(array)) is not None}
        self._constants |= {root: shared[root] if root in shared else self._memory.zeros(array.shape, array.dtype) for root, array in given.items()}
        return [_Job(array.nbytes, partial(self._copy, root, array)) for root, array in given.items() if root not in shared]

    def _copy(self, root: str, constant: Array) -> None:
        """Write a constant to its place, where arrays of the network show it."""
        np.copyto(self._constants[root], constant)
        self._memory.keep(self._constants[root])

    def constant(self, name: str) -> Array:
        """A constant in the graph's own memory."""
        return self._graph.constants[name]


@dataclass(frozen=True, slots=True)
class _Job:
    """Work on constants of this many bytes."""

    size: int
    work: Callable[[], Step | None]


def _results(jobs: Sequence[_Job]) -> list[Step | None]:
    """What the jobs return. All cores share them, the largest first, so that no core is left with a large one at the end."""
    with ThreadPoolExecutor(cores()) as pool:
        futures = {place: pool.submit(jobs[place].work) for place in sorted(range(len(jobs)), key=lambda place: -jobs[place].size)}
        return [futures[place].result() for place in range(len(jobs))]


def _steps(extracted: ExtractedGraph, kernels: Sequence[GroupKernel], arrays: _Arrays, memory: NetworkMemory) -> Iterator[tuple[str, Step]]:
    """The name and the prepared call of each group, in order. Groups that run one kernel with the same constants share their packed forms."""
    copies = arrays.place_constants(_unpacked(extracted, kernels))
    first = {packs: placed for placed in reversed(extracted.placed) if (packs := _packs(kernels, placed))}
    packing = [_packing(kernels, placed, arrays, memory) for placed in first.values()]
    packed = dict(zip(first, _results([*copies, *packing])[len(copies) :], strict=True))  # on all cores; below, calls share them
    for placed in extracted.placed:
        if placed.task is None:
            yield f"torch {_call_of(placed.group)}", _torch_step(placed.group, arrays)
            continue
        kernel, like = kernels[placed.task], packed.get(_packs(kernels, placed))
        given = _given(kernel, placed, arrays)
        prepared = kernel.prepare(given, memory) if like is None else kernel.prepare(given, memory, like)
        checks = index_checks(extracted.graph, placed.group, arrays)
        yield extracted.tasks[placed.task].name, CheckedStep(checks, prepared) if checks else prepared


def _given(kernel: GroupKernel, placed: Placed, arrays: _Arrays) -> list[Array]:
    """The arrays of a group, as its kernel takes them."""
    return [arrays.constant(name) if number in kernel.packed else arrays[name] for number, name in enumerate(placed.arrays)]


def _unpacked(extracted: ExtractedGraph, kernels: Sequence[GroupKernel]) -> Iterator[str]:
    """The arrays that kernels do not pack."""
    for placed in extracted.placed:
        if placed.task is not None:
            yield from (name for number, name in enumerate(placed.arrays) if number not in kernels[placed.task].packed)


def _packs(kernels: Sequence[GroupKernel], placed: Placed) -> tuple[object, ...]:
    """What a group packs: the number of its task, and the constants; empty if it packs nothing."""
    if placed.task is None or not kernels[placed.task].packed:
        return ()
    return placed.task, *(placed.arrays[number] for number in sorted(kernels[placed.task].packed))


def _packing(kernels: Sequence[GroupKernel], placed: Placed, arrays: _Arrays, memory: NetworkMemory) -> _Job:
    """Packs the constants of a group."""
    assert placed.task is not None
    kernel = kernels[placed.task]
    given = _given(kernel, placed, arrays)
    return _Job(sum(given[number].nbytes for number in kernel.packed), partial(kernel.prepare, given, memory))


def _call_of(group: Group) -> TorchCall:
    call = group.nodes[0].attributes["call"]
    assert isinstance(call, TorchCall)
    return call


def _torch_step(group: Group, arrays: _Arrays) -> Step:
    call = _call_of(group)
    inputs = [arrays.loose[name] if name in arrays.loose else tensor_of(arrays[name]) for name in group.nodes[0].inputs]
    targets = [(node.integer("index"), _target(node.name, arrays)) for node in group.nodes]

    def run() -> None:
        with torch.no_grad():
            results = call([one if isinstance(one, torch.Tensor) else one.held for one in inputs])
            for index, put in targets:
                result = results[index]
                assert isinstance(result, torch.Tensor)
                put(result)

    return run


def _target(name: str, arrays: _Arrays) -> Callable[[torch.Tensor], object]:
    """The function that stores a result of PyTorch."""
    loose = arrays.loose.get(name)
    if loose is None:
        return tensor_of(arrays[name]).copy_
    arena = arrays.arena  # not `arrays`, which would keep the constants alive
    return lambda result: loose.put(result.clone() if _may_share(arena, result) else result)


def _may_share(arena: Array, tensor: torch.Tensor) -> bool:
    """Whether a tensor may share memory with the arena, which the next steps write to."""
    if tensor.layout is not torch.strided:
        return True
    begin = arena.ctypes.data
    return begin - ALIGNMENT <= tensor.untyped_storage().data_ptr() <= begin + arena.nbytes
