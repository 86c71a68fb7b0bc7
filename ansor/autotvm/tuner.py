"""What all tuners are: they are asked for configurations and told what came of them. They measure nothing. Source: AutoTVM 0.9, `autotvm.tuner`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from ansor.autotvm.measured import MeasureInput, MeasureResult
from ansor.autotvm.space import ConfigEntity, ConfigSpace


class HasSpace(Protocol):
    """What a tuner needs of a task."""

    @property
    def config_space(self) -> ConfigSpace: ...


class Tuner(ABC):
    """Walks over the configurations of a task, or of a space, and gives none of them twice."""

    def __init__(self, task: HasSpace | ConfigSpace) -> None:
        self.space = task if isinstance(task, ConfigSpace) else task.config_space

    @abstractmethod
    def has_next(self) -> bool:
        """Whether there is a configuration that `next_batch` has not given yet."""

    @abstractmethod
    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        """Up to `batch_size` configurations to measure; none only when `has_next` is false, or none were asked for."""

    @abstractmethod
    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Take in what was measured: one result for each input. Tuners that learn nothing from results pass over them."""
