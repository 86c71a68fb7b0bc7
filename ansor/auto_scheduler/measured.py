"""What was measured and what came out, as the auto-scheduler's logs hold it. Source: TVM 0.9, `auto_scheduler.measure`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field, fields
from enum import IntEnum
from typing import Protocol

from ansor.auto_scheduler.loop_state import State
from ansor.auto_scheduler.steps import LARGEST, Step
from ansor.auto_scheduler.workload_key import WorkloadKey, parse_workload_key
from ansor.compat.common.outcome import mean_cost
from ansor.support import settings

PROCESSOR_KINDS = ("llvm", "c")
"""Kinds of targets that are processors."""

_UNSAID = -(1 << 40)


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
class HardwareParams:
    """The machine, as far as the search looks at it; sizes in bytes, 0 and -1 where nothing is known. What is not said is what `target` has."""

    num_cores: int = _UNSAID
    vector_unit_bytes: int = _UNSAID
    cache_line_bytes: int = _UNSAID
    max_shared_memory_per_block: int = _UNSAID
    max_local_memory_per_block: int = _UNSAID
    max_threads_per_block: int = _UNSAID
    max_vthread_extent: int = _UNSAID
    warp_size: int = _UNSAID
    target: InitVar[str] = "llvm"
    target_host: InitVar[str | None] = None

    def __post_init__(self, target: str, target_host: str | None) -> None:
        cpu = kind_of_target(target) in PROCESSOR_KINDS
        known = (settings.cores(), 64, 64, 0, 0, 0, 0, 0) if cpu else (-1, 16, 64, 0, LARGEST, 0, 0, 0)
        for one, value in zip(fields(self), known, strict=True):
            if getattr(self, one.name) == _UNSAID:
                object.__setattr__(self, one.name, value)


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

    transform_steps: tuple[Step, ...] = ()
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
    """A number of seconds, whose `value` is the plain number."""

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
        """Mean seconds of one call; infinite when something went wrong."""
        return mean_cost(self.costs, self.error_no)


def kind_of_target(target: str) -> str:
    """The first word of a target's text, or the "kind" in a text of JSON; empty when there is none. `cpu`, which is our word for it, is `llvm`."""
    found = re.search(r'"kind"\s*:\s*"([^"]*)"', target) if target.lstrip().startswith("{") else re.match(r"\s*(\S+)", target)
    kind = found[1] if found else ""
    return "llvm" if kind == "cpu" else kind
