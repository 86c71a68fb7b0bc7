"""Inputs and results of measurements, as in AutoTVM's logs. Source: AutoTVM 0.9, `autotvm.measure`."""

from typing import NamedTuple, Self

from ansor.compat.common.outcome import mean_cost
from ansor.templates.space import ConfigEntity
from ansor.templates.task import Task as Task

FAILED = (1e9,)
"""Costs of a failure, in seconds."""


class MeasureInput(NamedTuple):
    """A configuration of a task, for a target (its text)."""

    target: str
    task: Task
    config: ConfigEntity


class MeasureResult(NamedTuple):
    """The result of a measurement.

    costs: seconds of one call, one per repeat; all_cost: seconds in total, including the build; timestamp: seconds since 1970.
    """

    costs: tuple[float, ...]
    error_no: int
    all_cost: float
    timestamp: float

    @property
    def mean_cost(self) -> float:
        """Mean seconds of one call; infinite for a failure."""
        return mean_cost(self.costs, self.error_no)

    @property
    def error_msg(self) -> str:
        """The error, if known."""
        return ""


class Failed(MeasureResult):
    """A failure with the tool's output, which logs do not hold."""

    _text: str

    def __new__(cls, error_no: int, error_msg: str, all_cost: float, timestamp: float) -> Self:
        made = super().__new__(cls, FAILED, error_no, all_cost, timestamp)
        made._text = error_msg
        return made

    @property
    def error_msg(self) -> str:
        return self._text


class Unmeasured(Failed):
    """The machine ran out of a resource, so nothing is known about the program: it is neither reported to tuners nor logged."""
