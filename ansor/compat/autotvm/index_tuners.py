"""Tuners that only use indices: in order, or at random. Source: AutoTVM 0.9, `GridSearchTuner` and `RandomTuner`."""

from collections.abc import Sequence
from random import Random

from ansor.compat.autotvm.base_tuner import HasSpace, Tuner
from ansor.compat.autotvm.measured import MeasureInput, MeasureResult
from ansor.errors import ConfigError
from ansor.templates.space import ConfigEntity, ConfigSpace


class GridSearchTuner(Tuner):
    """Proposes the configurations from index `range_idx[0]` to `range_idx[1]`, inclusive, in order; without a range, all.

    Raises ConfigError if the range is not within the space. `index_offset`, `range_length`: the range; `counter`: how many were returned so far.
    """

    def __init__(self, task: HasSpace | ConfigSpace, range_idx: tuple[int, int] | None = None) -> None:
        super().__init__(task)
        first, last = range_idx or (0, self.space.range_length - 1)
        if not 0 <= first <= last < self.space.range_length:
            raise ConfigError(f"asked for indices {first} to {last} of a space of {self.space.range_length}; give (first, last) within it")
        self.index_offset = first
        self.range_length = last - first + 1
        self.counter = 0

    def reset(self) -> None:
        super().reset()
        self.counter = 0

    def has_next(self) -> bool:
        return self.counter < self.range_length

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        return [self.space.get(self._next_index()) for _ in range(min(batch_size, self.range_length - self.counter))]

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Do nothing: the order does not depend on results."""

    def _next_index(self) -> int:
        self.counter += 1
        return self.index_offset + self.counter - 1


class RandomTuner(GridSearchTuner):
    """Like `GridSearchTuner`, in random order. The same seed gives the same order. `visited`: indices so far. Memory grows with trials, not with the space."""

    def __init__(self, task: HasSpace | ConfigSpace, range_idx: tuple[int, int] | None = None, *, seed: int = 0) -> None:
        super().__init__(task, range_idx)
        self._seed = seed
        self._shuffle()

    def reset(self) -> None:
        super().reset()
        self._shuffle()

    def _shuffle(self) -> None:
        self._rng = Random(self._seed)
        self.visited: set[int] = set()
        # Fisher-Yates shuffle of 0, 1, 2, ..., storing only the positions whose value has changed.
        self._moved: dict[int, int] = {}

    def _next_index(self) -> int:
        last = self.range_length - self.counter - 1
        place = self._rng.randrange(last + 1)
        drawn, at_end = self._moved.get(place, place), self._moved.pop(last, last)
        if place != last:
            self._moved[place] = at_end
        self.counter += 1
        self.visited.add(self.index_offset + drawn)
        return self.index_offset + drawn
