"""What was measured and what came out, as the auto-scheduler's logs hold it. Source: TVM 0.9, `auto_scheduler.measure`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from ansor.auto_scheduler.steps import Step
from ansor.auto_scheduler.workload_key import WorkloadKey, parse_workload_key
from ansor.outcome import mean_cost


class LayoutRewriteOption(IntEnum):
    """What may be done to the order in which operands are stored."""

    NO_REWRITE = 0
    INSERT_TRANSFORM_STAGE = 1
    REWRITE_FOR_PRE_TRANSFORMED = 2


@dataclass(frozen=True)
class HardwareParams:
    """The machine, as far as the search looks at it; sizes in bytes, 0 and -1 where nothing is known."""

    num_cores: int
    vector_unit_bytes: int
    cache_line_bytes: int
    max_shared_memory_per_block: int = 0
    max_local_memory_per_block: int = 0
    max_threads_per_block: int = 0
    max_vthread_extent: int = 0
    warp_size: int = 0


@dataclass(frozen=True)
class RecordedTask:
    """A workload and a target (its text). Lines of older versions end earlier: what is None is not in the line, and so is all that follows."""

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


@dataclass(frozen=True)
class RecordedState:
    """A program: the steps that lead to it from its declaration. The stages that they make are never in a line."""

    transform_steps: tuple[Step, ...] = ()
    stages: tuple[()] = ()


@dataclass(frozen=True)
class MeasureInput:
    """A program of a task."""

    task: RecordedTask
    state: RecordedState


@dataclass(frozen=True)
class MeasureResult:
    """Seconds of one call, once for each repeat; what went wrong, in words that no line holds; seconds of everything, building included; seconds since 1970."""

    costs: Sequence[float]
    error_no: int
    error_msg: str = field(compare=False)
    all_cost: float
    timestamp: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "costs", tuple(self.costs))

    @property
    def mean_cost(self) -> float:
        """Mean seconds of one call; infinite when something went wrong."""
        return mean_cost(self.costs, self.error_no)


def kind_of_target(target: str) -> str:
    """The first word of a target's text, or the "kind" in a text of JSON; empty when there is none."""
    found = re.search(r'"kind"\s*:\s*"([^"]*)"', target) if target.lstrip().startswith("{") else re.match(r"\s*(\S+)", target)
    return found[1] if found else ""
