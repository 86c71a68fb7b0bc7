"""What was measured and what came out, as AutoTVM's logs hold it. Source: AutoTVM 0.9, `autotvm.measure`."""

from typing import NamedTuple

from ansor.autotvm.space import ConfigEntity
from ansor.autotvm.task import Task as Task
from ansor.outcome import mean_cost


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
