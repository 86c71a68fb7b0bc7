"""Inputs and results of measurements, as in the auto-scheduler's logs. Source: TVM 0.9, `auto_scheduler.measure`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.steps import LoggedStep
from ansor.compat.auto_scheduler.workload_key import WorkloadKey, parse_workload_key
from ansor.compat.common.hardware import PROCESSOR_KINDS, HardwareParams, kind_of_target
from ansor.compat.common.outcome import mean_cost
from ansor.targets.program_options import without_programs


class LayoutRewriteOption(IntEnum):
    """How operands with a free layout may be stored."""

    NO_REWRITE = 0
    INSERT_TRANSFORM_STAGE = 1
    REWRITE_FOR_PRE_TRANSFORMED = 2

    @staticmethod
    def get_target_default(target: str, in_relay_integration: bool = False) -> LayoutRewriteOption:
        """The default for a target: processors rewrite layouts, ahead of time inside a network; other devices do not."""
        if kind_of_target(target) not in PROCESSOR_KINDS:
            return LayoutRewriteOption.NO_REWRITE
        return LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED if in_relay_integration else LayoutRewriteOption.INSERT_TRANSFORM_STAGE


class AnyTask:
    """A workload and a target, from a log or as a `SearchTask`. `target`: its text; a `Target` if read from a log."""

    workload_key: str
    target: str
    hardware_params: HardwareParams | None
    target_host: str | None
    layout_rewrite_option: LayoutRewriteOption | None
    task_input_names: Sequence[str] | None

    @property
    def workload(self) -> WorkloadKey:
        """The parsed workload key."""
        return parse_workload_key(self.workload_key)

    @property
    def target_kind(self) -> str:
        """The kind of the target: `llvm` for `llvm -keys=cpu -mcpu=core-avx2`."""
        return kind_of_target(self.target)

    @property
    def recorded(self) -> RecordedTask:
        """The task as a log line holds it: without any compiler that its target names."""
        target, host = without_programs(self.target), without_programs(self.target_host or "")
        return RecordedTask(self.workload_key, target, self.hardware_params, host, self.layout_rewrite_option, tuple(self.task_input_names or ()))


@dataclass(frozen=True)
class RecordedTask(AnyTask):
    """A task from a log. Lines of older versions are shorter: the first field that is None and all later ones are missing in the line."""

    workload_key: str
    target: str
    hardware_params: HardwareParams | None = None
    target_host: str | None = None
    layout_rewrite_option: LayoutRewriteOption | None = None
    task_input_names: tuple[str, ...] | None = None

    @property
    def recorded(self) -> RecordedTask:
        """This task itself."""
        return self


@dataclass(frozen=True)
class RecordedState:
    """A program: the steps applied to its declaration. Log lines never hold the resulting stages."""

    transform_steps: tuple[LoggedStep, ...] = ()
    stages: tuple[()] = ()


@dataclass(frozen=True)
class MeasureInput:
    """A program of a task. When read from a log, task and state are plain data; `recover_measure_input` turns them into a SearchTask and a State."""

    task: AnyTask
    state: RecordedState | State

    @property
    def recorded(self) -> MeasureInput:
        """The input as a log line holds it."""
        return MeasureInput(self.task.recorded, RecordedState(self.state.transform_steps))


class Seconds(float):
    """Seconds, with the plain number as `value`."""

    @property
    def value(self) -> float:
        return float(self)


@dataclass(frozen=True)
class MeasureResult:
    """The result of a measurement.

    costs: seconds of one call, one per repeat (`costs[0].value` is `costs[0]`); error_msg: not part of log lines; all_cost: seconds in total, including the
    build; timestamp: seconds since 1970.
    """

    costs: Sequence[float]
    error_no: int
    error_msg: str = field(compare=False)
    all_cost: float
    timestamp: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "costs", tuple(Seconds(cost) if isinstance(cost, float) else cost for cost in self.costs))

    @property
    def mean_cost(self) -> float:
        """Mean seconds of one call; infinite for a failure."""
        return mean_cost(self.costs, self.error_no)
