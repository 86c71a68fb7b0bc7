"""Compiles an integer network to kernels. Each distinct operator is a task: its program is tuned, taken from records, or picked by the model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import CSource
from ansor.errors import ScheduleError
from ansor.integer.declare import declaration
from ansor.integer.network import IntegerNetwork
from ansor.integer.network_code import Call, Limits, NetworkCode, NetworkKernel
from ansor.integer.operators import AveragePool, Convolution, MaxPool, Operator
from ansor.integer.passes import fuse_additions
from ansor.integer.plan import arena_of, roots_of, steps_of
from ansor.integer.widths import in_form, narrow
from ansor.ir.dag import Dag, c_identifier
from ansor.run.choosing import chosen, is_tunable, recorded_states, say_guesses
from ansor.run.keywords import RunOptions
from ansor.run.reporter import Reporter
from ansor.run.session import tune_states
from ansor.run.states import Best, TaskState
from ansor.schedule.memory import used_bytes
from ansor.schedule.scopes import INSIDE
from ansor.schedule.sketch import Sketch
from ansor.support.text import counted
from ansor.targets.base import Target
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor

NO_LIMITS = Limits()
LEAST = 1024
"""Bytes of workspace that every kernel may have, even if the arena has to grow. With an operating system, it is the size of the L2 cache if that is larger."""


@dataclass(frozen=True, eq=False)
class Step:
    """An operator and its task. in_place: the inputs of its declaration that its kernel overwrites."""

    operator: Operator
    task: SearchTask
    in_place: tuple[str, ...]

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """A key that is equal for steps that share a kernel."""
        return self.task.workload_key, self.in_place


def compiled(network: IntegerNetwork, target: Target, asked: RunOptions, reporter: Reporter, limits: Limits = NO_LIMITS) -> NetworkCode:
    """Compile a network. Tunes its kernels if `asked` says so. Weights have 16 bits if that is faster and the limits allow it. Workspaces may use the free
    part of the arena within the limits."""
    network, target = _suited(network, target, limits)
    steps = _steps(network, target, limits.arena_bytes)
    states = recorded_states([(task, float(weight)) for task, weight in _tasks(steps)], asked.records)
    tune_states(states, asked, reporter)
    reporter.now(f"choosing programs for {counted(len(states), 'kernel')}")
    bests = {key: _chosen(state, target, asked) for key, state in states.items()}
    say_guesses([state for state in states.values() if is_tunable(state.task)], reporter.say, hint=not asked.given)
    return _assembled(network, target, steps, bests)


def _suited(network: IntegerNetwork, target: Target, limits: Limits) -> tuple[IntegerNetwork, Target]:
    """The network in the form that is compiled for a target, and the target, with one thread if its programs cannot use more."""
    target = target if target.dialect.pool else _on_one_thread(target)
    return fuse_additions(in_form(narrow(network), target, limits)), target


def as_declared(network: IntegerNetwork, target: Target) -> NetworkCode:
    """The program whose kernels are the plain loops of their declarations, untuned and on bytes."""
    network = narrow(network)
    steps = _steps(network, _on_one_thread(target))
    bests = {step.task.workload_key: Best(Sketch(step.task.dag), (), math.inf) for step in steps}
    return _assembled(network, _on_one_thread(target), steps, bests)


def _on_one_thread(target: Target) -> Target:
    return replace(target, hardware=replace(target.hardware, threads=1))


def tuning_tasks(network: IntegerNetwork, target: Target, limits: Limits = NO_LIMITS) -> list[tuple[SearchTask, int]]:
    """The tasks of the kernels that `compiled` makes for a network, including those not worth tuning, and how often each runs."""
    return tasks_of(*_suited(network, target, limits), limits.arena_bytes)


def tasks_of(network: IntegerNetwork, target: Target, arena_bytes: int = 0) -> list[tuple[SearchTask, int]]:
    """A task for each distinct operator, in the order of their first runs, and how often it runs. arena_bytes: as in `Limits`."""
    return _tasks(_steps(network, target, arena_bytes))


def _tasks(steps: Sequence[Step]) -> list[tuple[SearchTask, int]]:
    counts = Counter(step.task.workload_key for step in steps)
    return [(task, counts[key]) for key, task in {step.task.workload_key: step.task for step in steps}.items()]


def _steps(network: IntegerNetwork, target: Target, arena_bytes: int = 0) -> list[Step]:
    """Every step with its task. A workspace may use what is free in the arena while its step runs, but at least `LEAST`, within the target's limit.
    arena_bytes: the size of the arena, if that is larger than the tensors need."""
    roots, operators = roots_of(network), steps_of(network)
    plan = arena_of(network, [0] * len(operators), target.alignment)
    tensors = [_declared(one, network) for one in operators]
    keys = [Dag(one).key for one in tensors]
    size, free = max(plan.size, arena_bytes), dict[str, int]()
    least = max(LEAST, target.hardware.caches.l2_bytes) if target.dialect.hosted else LEAST
    for key, alive in zip(keys, plan.alive, strict=True):
        free[key] = min(free.get(key, size), max(size - alive, least))
    found = []
    for one, given, key in zip(operators, tensors, keys, strict=True):
        task = SearchTask(tensors=given, target=_limited(target, free[key]), name=_name(one, network))
        same = tuple(tensor.name for name, tensor in zip(one.inputs, given, strict=False) if roots[name] == roots[one.output])
        found.append(Step(one, task, same))
    return found


def _declared(operator: Operator, network: IntegerNetwork) -> list[Tensor]:
    """The declaration of an operator, with the stored dtypes of its tensors."""
    inputs, output = [network.tensors[name] for name in operator.inputs], network.tensors[operator.output]
    return declaration(operator, [one.shape for one in inputs], [one.dtype for one in (*inputs, output)])


def _limited(target: Target, workspace: int) -> Target:
    memory = target.hardware.memory
    least = min(workspace, memory.workspace_bytes or workspace)
    return replace(target, hardware=replace(target.hardware, memory=replace(memory, workspace_bytes=least)))


def _chosen(state: TaskState, target: Target, asked: RunOptions) -> Best:
    """The program of a task: the best measured one, or else the model's pick. If none fits the limit on its workspace, the limit is raised in steps; in the
    end only the target's own limit applies."""
    limit = state.task.target.hardware.memory.workspace_bytes
    for wider in (state.task.target, *(_limited(target, limit * more // 4) for more in (5, 6, 8, 16))):
        state.task = SearchTask(tensors=state.task.tensors, target=_for_network(wider), name=state.task.name)
        with suppress(ScheduleError):
            return chosen(state, asked.search.model, asked.search.seed)
    state.task = SearchTask(tensors=state.task.tensors, target=_for_network(target), name=state.task.name)
    return chosen(state, asked.search.model, asked.search.seed)


def _for_network(target: Target) -> Target:
    """The target without the memory limits of measuring a single program: a network may keep weights in flash."""
    return replace(target, hardware=replace(target.hardware, memory=replace(target.hardware.memory, measured=False)))


def _name(operator: Operator, network: IntegerNetwork) -> str:
    """A name such as convolution_3x3_16_32_16x16_s2x2: window, channels of input and output, size of the output, strides."""
    shapes = [network.tensors[name].shape for name in (*operator.inputs[:1], operator.output)]
    parts = [operator.kind]
    if isinstance(operator, (Convolution, AveragePool, MaxPool)):
        parts += ["x".join(map(str, operator.window.kernel)), str(shapes[0][3]), *([str(shapes[1][3])] if operator.kind == "convolution" else [])]
        parts += ["x".join(map(str, shapes[1][1:3]))] + ([f"s{'x'.join(map(str, operator.window.strides))}"] if operator.window.strides != (1, 1) else [])
    else:
        parts += ["x".join(map(str, shape)) for shape in shapes[: 2 if operator.kind == "dense" else 1]]
    return "_".join(parts)


def _assembled(network: IntegerNetwork, target: Target, steps: Sequence[Step], bests: dict[str, Best]) -> NetworkCode:
    numbers: dict[tuple[str, tuple[str, ...]], int] = {}
    kernels: list[NetworkKernel] = []
    names: set[str] = set()
    calls: list[Call] = []
    constants: dict[str, NDArray[np.generic]] = {}
    for place, step in enumerate(steps):
        if step.key not in numbers:
            numbers[step.key] = len(kernels)
            kernels.append(_kernel(step, bests[step.task.workload_key], _unique(f"{network.name}_{step.task.name}", names)))
        kernel = numbers[step.key]
        calls.append(Call(step.operator, kernel, tuple(f"{c_identifier(network.name)}_{place}_{name}" for name in step.operator.constants)))
        packed = _packed(step.operator, kernels[kernel].code)
        constants |= dict(zip(calls[-1].constants, packed, strict=True))
    plan = arena_of(network, [kernels[call.kernel].code.workspace_bytes for call in calls], target.alignment)
    return NetworkCode(network, target, tuple(kernels), tuple(calls), plan, constants)


def _unique(name: str, taken: set[str]) -> str:
    found, count = c_identifier(name), 1
    while found in taken:
        count += 1
        found = f"{c_identifier(name)}_{count}"
    taken.add(found)
    return found


def _kernel(step: Step, best: Best, entry: str) -> NetworkKernel:
    code = step.task.source(best.sketch, best.row, entry)
    for name in (*step.in_place, step.task.tensors[-1].name) if step.in_place else ():  # these pointers alias
        code = replace(code, text=re.sub(rf"\*restrict {name}\b", f"*{name}", code.text))
    loops = best.sketch.lower_row(best.row, entry)
    stack = max(map(int, used_bytes(loops, INSIDE, step.task.target.alignment)), default=0)
    return NetworkKernel(code, stack, best.origin, best.cost if math.isfinite(best.cost) else None)


def _packed(operator: Operator, code: CSource) -> list[NDArray[np.generic]]:
    """The constants of an operator in the order in which its kernel reads them."""
    wanted = [one for one in code.arguments if one.role == "constant"]
    return [argument.physical(array) for argument, array in zip(wanted, operator.constants.values(), strict=True)]
