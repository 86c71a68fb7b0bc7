"""What was measured and what came out, as AutoTVM's logs hold it. Source: AutoTVM 0.9, `autotvm.measure`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ansor.autotvm.space import ConfigEntity
from ansor.json_values import Json
from ansor.outcome import mean_cost


@dataclass(frozen=True)
class Task:
    """A workload: the name of a template and its arguments, tensors as `("TENSOR", shape, dtype)`."""

    name: str
    args: tuple[Json, ...] = ()
    kwargs: Mapping[str, Json] = field(default_factory=dict, hash=False)

    @property
    def workload(self) -> tuple[Json, ...]:
        """Name and arguments in one tuple."""
        return (self.name, *self.args)


class MeasureInput(NamedTuple):
    """A configuration of a task, for a target (its text)."""

    target: str
    task: Task
    config: ConfigEntity


class MeasureResult(NamedTuple):
    """Seconds of one call, once for each repeat; what went wrong; seconds of everything, building included; seconds since 1970."""

    costs: tuple[float, ...]
    error_no: int
    all_cost: float
    timestamp: float

    @property
    def mean_cost(self) -> float:
        """Mean seconds of one call; infinite when something went wrong."""
        return mean_cost(self.costs, self.error_no)
