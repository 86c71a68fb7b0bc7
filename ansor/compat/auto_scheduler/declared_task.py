"""A workload and a target, with the names that logs use and the values that the search takes. Source: TVM 0.9, `auto_scheduler.search_task`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from numpy.typing import ArrayLike

from ansor.compat.auto_scheduler.compute_dag import AnyState, ComputeDAG
from ansor.compat.auto_scheduler.measured import AnyTask, LayoutRewriteOption, MeasureInput, RecordedTask
from ansor.compat.auto_scheduler.target_text import Target as TargetText
from ansor.compat.auto_scheduler.target_text import of_any as target_text
from ansor.compat.auto_scheduler.target_text import with_keys
from ansor.compat.auto_scheduler.task_inputs import input_values, register_task_input_buffer
from ansor.compat.auto_scheduler.workload_key import parse_workload_key
from ansor.compat.auto_scheduler.workload_registry import is_registered, make_workload_key, register_workload_tensors
from ansor.compat.common.hardware import HardwareParams
from ansor.compat.common.local_target import local_target
from ansor.errors import TargetError
from ansor.targets.base import Target
from ansor.tasks import task as tasks
from ansor.tasks.workloads import WorkloadFunction


class DeclaredTask(AnyTask):
    """A computation, and the machine that runs it.

    Args:
        func, args: a registered workload function, or its name, and its arguments.
        compute_dag, workload_key: alternatively, the declaration or its key; by default each is derived from the other.
        target: text such as `llvm -mcpu=skylake-avx512`, or one of `ansor.targets`; `task.target` is a `Target`. target_host: kept for the log.
        hardware_params: programs run on `num_cores` threads.
        layout_rewrite_option: how to store operands with a free layout.
        task_inputs: values of inputs by name, or names of registered inputs; task_inputs_overwrite, task_inputs_save_to_file: see
            `register_task_input_buffer`.
        desc: a description for display.

    Raises DeclarationError for an unknown workload, TargetError without a target. Tasks can be pickled.
    """

    target: TargetText
    hardware_params: HardwareParams
    layout_rewrite_option: LayoutRewriteOption

    def __init__(
        self,
        func: str | WorkloadFunction | None = None,
        args: Sequence[object] | None = None,
        compute_dag: ComputeDAG | None = None,
        workload_key: str | None = None,
        target: str | Target | None = None,
        target_host: str | None = None,
        hardware_params: HardwareParams | None = None,
        layout_rewrite_option: LayoutRewriteOption | int | None = None,
        task_inputs: Mapping[str, ArrayLike] | Sequence[str] | None = None,
        task_inputs_overwrite: bool = False,
        task_inputs_save_to_file: bool = False,
        desc: str = "",
    ) -> None:
        if func is None and workload_key is None and compute_dag is None:
            raise TargetError("asked for a task without a workload; give func with args, compute_dag, or workload_key")
        if target is None:
            raise TargetError("asked for a task without a target; give a text such as target='llvm'")
        if func is not None:
            workload_key = make_workload_key(func, args or ())
        self.compute_dag = compute_dag or ComputeDAG(str(workload_key))
        self.workload_key = workload_key or register_workload_tensors(self.compute_dag.workload_key(), self.compute_dag.tensors)
        self._local = target if isinstance(target, Target) else None
        self.target = with_keys(target_text(target, target_host))
        self.target_host = "" if self.target.host is None else str(self.target.host)
        self.hardware_params = hardware_params or _hardware(self.target, self._local)
        option = LayoutRewriteOption.get_target_default(self.target) if layout_rewrite_option is None else LayoutRewriteOption(layout_rewrite_option)
        self.layout_rewrite_option = option
        self.desc = desc
        self.task_input_names: list[str] = list(task_inputs or ())
        if isinstance(task_inputs, Mapping):
            for name, value in task_inputs.items():
                register_task_input_buffer(self.workload_key, name, value, task_inputs_overwrite, task_inputs_save_to_file)

    @cached_property
    def local_target(self) -> Target:
        """The target that the search uses. Raises TargetError if it is not a processor."""
        return self._local or local_target(self.target, self.hardware_params)

    @cached_property
    def local(self) -> tasks.SearchTask:
        """The task that the search uses."""
        inputs = input_values(self.workload_key, self.compute_dag.tensors, self.task_input_names)
        return tasks.SearchTask(tensors=self.compute_dag.tensors, target=self.local_target, name=self.desc or parse_workload_key(self.workload_key).name,
                                as_written=True, inputs=inputs)  # fmt: skip

    def __repr__(self) -> str:
        return f"SearchTask({self.desc or self.workload_key}, {self.target})"

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name not in ("local", "local_target")}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        if not is_registered(self.workload_key):
            register_workload_tensors(self.workload_key, self.compute_dag.tensors)


def _hardware(text: str, target: Target | None) -> HardwareParams:
    """The hardware parameters of a target. Its text may set the number of threads."""
    if target is None and text.split()[:1] == ["cpu"]:
        target = local_target(text)
    if target is None:
        return HardwareParams(target=text)
    return HardwareParams(target.threads, target.vector_bytes, target.caches.line_bytes)


Task = TypeVar("Task", bound=DeclaredTask)


def recovered(inp: MeasureInput, rebuild_state: bool = False, kind: type[DeclaredTask] = DeclaredTask) -> MeasureInput:
    """Complete the task of a measurement from a log; with `rebuild_state` also its state, by applying the steps to the declaration.

    Raises DeclarationError for a workload that is not registered here, ScheduleError for steps that do not fit it.
    """
    task = recovered_as(kind, inp.task)
    state: AnyState = inp.state
    return MeasureInput(task, task.compute_dag.state_of(state) if rebuild_state else inp.state)


def recovered_as(kind: type[Task], task: object) -> Task:
    """Complete a task from a log. Returns a complete one unchanged."""
    if isinstance(task, kind):
        return task
    assert isinstance(task, RecordedTask)
    return kind(
        workload_key=task.workload_key, target=task.target, target_host=task.target_host, hardware_params=task.hardware_params,
        layout_rewrite_option=task.layout_rewrite_option, task_inputs=list(task.task_input_names or ()),
    )  # fmt: skip
