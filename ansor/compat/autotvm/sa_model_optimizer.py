"""Simulated annealing: which configurations a cost model scores highest. Source: AutoTVM 0.9, `SimulatedAnnealingOptimizer`.

AutoTVM leaves out what a model scores below 0. Scores of a model that learned an order may all be below 0, so here the best are the best.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Collection, Sequence
from itertools import accumulate
from math import exp, inf, isnan
from operator import mul
from random import Random

from ansor.compat.autotvm.model_based_tuner import Scores
from ansor.compat.autotvm.tuner import HasSpace
from ansor.errors import ConfigError
from ansor.templates.space import ConfigSpace

_logger = logging.getLogger("autotvm")


class SimulatedAnnealingOptimizer:
    """`parallel_size` walks over a space at once, `n_iter` steps each, fewer when the best did not change for `early_stop` steps.

    A step changes one knob, and is taken with probability exp(min(gain / temperature, 1)); the temperature falls from temp[0] to temp[1], or stays at a single
    number. persistent: the next search starts where this one ended. log_interval: steps between two lines of the logger "autotvm".

    Raises ConfigError for numbers that are no counts or temperatures.
    """

    def __init__(
        self, task: HasSpace | ConfigSpace, n_iter: int = 500, temp: float | tuple[float, float] = (1, 0), persistent: bool = True, parallel_size: int = 128,
        early_stop: int = 50, log_interval: int = 50, *, seed: int = 0,
    ) -> None:  # fmt: skip
        self._first, self._last = temp if isinstance(temp, tuple) else (temp, temp)
        if n_iter < 0 or parallel_size < 1 or early_stop < 1 or min(self._first, self._last) < 0:
            asked = f"n_iter={n_iter}, temp={temp}, parallel_size={parallel_size}, early_stop={early_stop}"
            raise ConfigError(f"asked to anneal with {asked}; give temperatures from 0 on, and at least one walk and one step")
        self.space = task if isinstance(task, ConfigSpace) else task.config_space
        self.n_iter, self.persistent, self.parallel_size = n_iter, persistent, parallel_size
        self.early_stop, self.log_interval, self.seed = early_stop, log_interval, seed
        strides = accumulate(self.space.dims, mul, initial=1)
        self._free = [(size, stride) for size, stride in zip(self.space.dims, strides, strict=False) if size > 1]
        self.reset()

    def reset(self) -> None:
        """Forget where earlier searches ended."""
        self._rng = Random(self.seed)
        self._points: list[int] | None = None

    def find_maximums(self, model: Scores, num: int, exclusive: Collection[int]) -> list[int]:
        """Up to `num` indices that the model scores highest of those that were walked over, best first, none of `exclusive` and none scored -infinity."""
        known: dict[int, float] = {}
        best = _Best(num, exclusive)
        points = self._start()
        scores = _scored(model, points, known)
        best.offer(points, scores)
        changed = 0
        for step in range(self.n_iter):
            if step >= changed + self.early_stop:
                break
            moved = [self._neighbour(point) for point in points]
            found = _scored(model, moved, known)
            temperature = self._first - (self._first - self._last) * step / (self.n_iter + 1)
            for place, (new, old) in enumerate(zip(found, scores, strict=True)):
                if self._rng.random() < _acceptance(new - old, temperature):
                    points[place], scores[place] = moved[place], new
            if best.offer(moved, found):
                changed = step
            if self.log_interval and (step + 1) % self.log_interval == 0:
                _logger.debug("annealing: %d steps, the last that found a better one is %d", step + 1, changed)
        self._points = list(points) if self.persistent else None
        return best.indices()

    def _neighbour(self, index: int) -> int:
        """As `ConfigSpace.random_next_index`, without counting the space anew."""
        if not self._free:
            return index
        size, stride = self._free[self._rng.randrange(len(self._free))]
        digit, other = index // stride % size, self._rng.randrange(size - 1)
        return index + (other + (other >= digit) - digit) * stride

    def _start(self) -> list[int]:
        if self._points is not None:
            return list(self._points)
        drawn: dict[int, None] = {}
        while len(drawn) < min(self.parallel_size, self.space.range_length):
            drawn.setdefault(self._rng.randrange(self.space.range_length))
        return list(drawn)


class _Best:
    """The best so many of what was offered, each once."""

    def __init__(self, number: int, exclusive: Collection[int]) -> None:
        self._number = number
        self._seen = set(exclusive)
        self._heap: list[tuple[float, int]] = []

    def offer(self, indices: Sequence[int], scores: Sequence[float]) -> bool:
        """Whether one of them is among the best now."""
        better = False
        for index, score in zip(indices, scores, strict=True):
            worst = self._heap[0][0] if len(self._heap) >= self._number else -inf
            if index in self._seen or not score > worst:
                continue
            self._seen.add(index)
            better = True
            (heapq.heappush if len(self._heap) < self._number else heapq.heapreplace)(self._heap, (score, index))
        return better

    def indices(self) -> list[int]:
        return [index for _, index in sorted(self._heap, key=lambda item: (-item[0], item[1]))]


def _acceptance(gain: float, temperature: float) -> float:
    """A walk leaves a place that is impossible (-infinity) for any other, and is as good as stuck only where all are."""
    return 1.0 if isnan(gain) else exp(max(min(gain / (temperature + 1e-5), 1.0), -700.0))


def _scored(model: Scores, indices: Sequence[int], known: dict[int, float]) -> list[float]:
    """The model's scores; it is asked once for each index."""
    fresh = [index for index in dict.fromkeys(indices) if index not in known]
    if fresh:
        known.update(zip(fresh, map(float, model.predict(fresh)), strict=True))
    return [known[index] for index in indices]
