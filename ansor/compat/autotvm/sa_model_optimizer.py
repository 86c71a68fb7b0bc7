"""Finds the configurations a cost model scores highest, by the evolution of `ansor.search`, under the name of AutoTVM's optimiser."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.compat.autotvm.base_tuner import HasSpace
from ansor.compat.autotvm.model_based_tuner import Scores
from ansor.errors import ConfigError
from ansor.ir.feature_rows import FeatureRows
from ansor.search.evolution import EvolutionOptions, SearchGoal, evolve
from ansor.search.population import Population, empty_population, joined, sample_population
from ansor.search.sampling import SampledSpace
from ansor.search.space import Rows
from ansor.templates.space import ConfigSpace


class SimulatedAnnealingOptimizer:
    """Evolves `parallel_size` configurations over `n_iter` generations. persistent: each search starts from the results of the one before.

    temp, early_stop, log_interval: parameters of simulated annealing, ignored here. Raises ConfigError for invalid counts.
    """

    def __init__(
        self, task: HasSpace | ConfigSpace, n_iter: int = 16, temp: float | tuple[float, float] = (1, 0), persistent: bool = True, parallel_size: int = 512,
        early_stop: int = 50, log_interval: int = 50, *, seed: int = 0,
    ) -> None:  # fmt: skip
        if n_iter < 0 or parallel_size < 1:
            raise ConfigError(f"asked for n_iter={n_iter} generations of parallel_size={parallel_size} configurations; give at least 0 and 1")
        self.space = task if isinstance(task, ConfigSpace) else task.config_space
        self.persistent, self.seed = persistent, seed
        self._options = EvolutionOptions(population=parallel_size, generations=n_iter)
        self.reset()

    def reset(self) -> None:
        """Forget earlier searches."""
        self._rng = np.random.default_rng(self.seed)
        self._last: Population | None = None

    def find_maximums(self, model: Scores, num: int, exclusive: Collection[int]) -> list[int]:
        """Up to `num` of the visited indices that the model scores highest, best first, none of `exclusive` and none scored -infinity."""
        spaces = [SampledSpace(_Configurations(self.space, model))]
        barred = np.array([self.space.point2knob(index) for index in exclusive], np.int64).reshape(len(exclusive), len(self.space.dims))
        goal = SearchGoal(num, [np.sort(spaces[0].tables.keys(barred))], np.ones(1), empty_population(spaces))
        kept = goal.anchors if self._last is None else self._last
        fresh = sample_population(spaces, self._options.population - len(kept), goal.weights, self._rng, goal.excluded)
        hall = evolve(spaces, FeatureRows.prior_logs, joined(kept, fresh).distinct(spaces), goal, self._rng, self._options)
        scores, points = hall.features.prior_logs(), [self.space.knob2point(row) for row in hall.members.blocks[0].tolist()]
        self._last = hall.members if self.persistent else None
        found = sorted(zip(-scores, points, strict=True))
        return [point for cost, point in found if cost < np.inf][:num]


class _Configurations:
    """A `search.space.Space` of configurations: a column for each knob. The model's scores are the prior of the features."""

    def __init__(self, space: ConfigSpace, model: Scores) -> None:
        self._space, self._model = space, model
        self._known: dict[int, float] = {}
        self.name = ""
        self.sizes: NDArray[np.int64] = np.array(space.dims, np.int64)

    def weights(self, column: int) -> None:
        """None: all values are equally likely."""

    def neighbours(self, column: int) -> None:
        """None: any value may change to any other."""

    def legal(self, rows: Rows) -> NDArray[np.bool_]:
        """All rows are legal: impossible configurations score -infinity instead."""
        return np.ones(len(rows), bool)

    def features(self, rows: Rows) -> FeatureRows:
        """The scores. The model is called once per configuration."""
        points = [self._space.knob2point(row) for row in rows.tolist()]
        self._ask([point for point in dict.fromkeys(points) if point not in self._known])
        scores = np.array([self._known[point] for point in points])
        return FeatureRows(np.zeros((len(rows), 0), np.float32), np.arange(len(rows)), len(rows), scores)

    def _ask(self, points: Sequence[int]) -> None:
        if points:
            self._known.update(zip(points, map(float, self._model.predict(points)), strict=True))
