"""Inputs and results of measurements, as in the auto-scheduler's logs. Source: TVM 0.9, `auto_scheduler.measure`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.steps import LoggedStep
from ansor.compat.auto_scheduler.workload_key import WorkloadKey, parse_workload_key
from ansor.compat.common.hardware import PROCESSOR_KINDS, HardwareParams, kind_of_target
from ansor.compat.common.outcome import mean_cost


class LayoutRewriteOption(IntEnum):
    """What may be done to the order in which operands are stored."""

    NO_REWRITE = 0
    INSERT_TRANSFORM_STAGE = 1
    REWRITE_FOR_PRE_TRANSFORMED = 2


    @staticmethod
    def get_target_default(target: str, in_relay_integration: bool = False) -> LayoutRewriteOption:
        """What is done for a target when nothing is said: on processors a transform, ahead of time inside a network."""
        if kind_of_target(target) not in PROCESSOR_KINDS:
            return LayoutRewriteOption.NO_REWRITE
        return LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED if in_relay_integration else LayoutRewriteOption.INSERT_TRANSFORM_STAGE


@dataclass(frozen=True)
class RecordedTask:
    """A workload and a target (its text; from a log a `Target`).

    Lines of older versions end earlier: what is None is not in the line, and so is all that follows.
    """

    workload_key: str
    target: str
    hardware_params: HardwareParams | None = None
    target_host: str | None = None
    layout_rewrite_option: LayoutRewriteOption | None = None
    task_input_names: tuple[str, ...] | None = None

    @property
    def workload(self) -> WorkloadKey:
        """The workload key, taken apart."""
        return parse_workload_key(self.workload_key)

    @property
    def target_kind(self) -> str:
        """`llvm` of `llvm -keys=cpu -mcpu=core-avx2`."""
        return kind_of_target(self.target)

    @property
    def recorded(self) -> RecordedTask:
        """The task as a log line holds it: itself."""
        return self


class AnyTask(Protocol):
    """What a measurement tells of its task: one from a log, or a `SearchTask`."""

    @property
    def workload_key(self) -> str: ...

    @property
    def target(self) -> str: ...

    @property
    def hardware_params(self) -> HardwareParams | None: ...

    @property
    def target_host(self) -> str | None: ...

    @property
    def layout_rewrite_option(self) -> LayoutRewriteOption | None: ...

    @property
    def task_input_names(self) -> Sequence[str] | None: ...

    @property
    def workload(self) -> WorkloadKey: ...

    @property
    def target_kind(self) -> str: ...

    @property
    def recorded(self) -> RecordedTask: ...


@dataclass(frozen=True)
class RecordedState:
    """A program: the steps that lead to it from its declaration. The stages that they make are never in a line."""

    transform_steps: tuple[LoggedStep, ...] = ()
    stages: tuple[()] = ()


@dataclass(frozen=True)
class MeasureInput:
    """A program of a task. From a log, both are data; `recover_measure_input` makes a SearchTask and a State of them."""

    task: AnyTask
    state: RecordedState | State

    @property
    def recorded(self) -> MeasureInput:
        """As a log line holds it."""
        return MeasureInput(self.task.recorded, RecordedState(self.state.transform_steps))


class Seconds(float):
    """Seconds, whose `value` is the plain number."""

    @property
    def value(self) -> float:
        return float(self)


@dataclass(frozen=True)
class MeasureResult:
    """Seconds of one call, once for each repeat (`costs[0].value` is `costs[0]`); what went wrong, in words that no line holds; seconds of everything, building
    included; seconds since 1970.
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
