"""A tuner made of a cost model and an optimiser that maximises its score. Source: AutoTVM 0.9, `ModelBasedTuner`.

    results -> CostModel.fit -> ModelOptimizer.find_maximums -> plan of `plan_size` configurations -> next_batch
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from random import Random
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ansor.compat.autotvm.base_tuner import HasSpace, Tuner
from ansor.compat.autotvm.measured import MeasureInput, MeasureResult
from ansor.errors import ConfigError
from ansor.templates.space import ConfigEntity, ConfigSpace

RANDOM_SHARE = 0.05
"""The share of a plan, at its end, replaced by random configurations."""


class Scores(Protocol):
    """The part of a model that an optimiser needs: a score per index, higher is better."""

    def predict(self, xs: Sequence[int], output_margin: bool = False) -> NDArray[np.float64]: ...


class CostModel(Scores, Protocol):
    """Predicts how fast configurations are, by their indices: see `XGBoostCostModel`. `ys` are calls a second, 0 for a failure."""

    def fit(self, xs: Sequence[int], ys: Sequence[float], plan_size: int) -> None: ...
    def fit_log(self, records: Iterable[tuple[MeasureInput, MeasureResult]], plan_size: int, min_seed_records: int = 500) -> bool: ...
    def load_basemodel(self, base_model: Self) -> None: ...
    def spawn_base_model(self) -> Self: ...


class ModelOptimizer(Protocol):
    """Searches a space for the configurations a model scores highest: up to `num` indices, best first, none of `exclusive`."""

    def find_maximums(self, model: Scores, num: int, exclusive: Collection[int]) -> list[int]: ...
    def reset(self) -> None: ...


class ModelBasedTuner(Tuner):
    """Proposes plans of `plan_size` configurations that a model expects to be fast; random ones at first, and for the last 5 % of each plan.

    Refits the model after every `plan_size` new results, once one has succeeded. diversity_filter_ratio, at least 1: the plan is chosen from that many times as
    many candidates, so that its knobs take many values. Deterministic for the same seed and results, if the model and the optimiser are.

    Raises ConfigError if plan_size < 1 or diversity_filter_ratio < 1.
    """

    def __init__(
        self, task: HasSpace | ConfigSpace, cost_model: CostModel, model_optimizer: ModelOptimizer, plan_size: int,
        diversity_filter_ratio: float | None = None, *, seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(task)
        if plan_size < 1 or (diversity_filter_ratio is not None and diversity_filter_ratio < 1):
            raise ConfigError(f"asked for plan_size={plan_size}, diversity_filter_ratio={diversity_filter_ratio}; give at least 1 of each, or no ratio")
        self.cost_model, self.model_optimizer = cost_model, model_optimizer
        self.plan_size, self.diversity_filter_ratio = plan_size, diversity_filter_ratio
        self._seed = seed
        self._start()

    def reset(self) -> None:
        """Reset to the initial state, including the model."""
        super().reset()
        self.cost_model = self.cost_model.spawn_base_model()
        self.model_optimizer.reset()
        self._start()

    def _start(self) -> None:
        self._rng = Random(self._seed)
        self.trials: list[int] = []
        self.trial_pt = 0
        self.visited: set[int] = set()
        self.xs: list[int] = []
        self.ys: list[float] = []
        self.train_ct = 0

    def has_next(self) -> bool:
        return len(self.visited) < self.space.range_length

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        batch: list[ConfigEntity] = []
        while len(batch) < batch_size and self.has_next():
            index = self._next_index()
            self.visited.add(index)
            batch.append(self.space.get(index))
        return batch

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from results, whoever requested them. Finds configurations by their values, not their index, so that a run can resume from its log.

        Raises ConfigError for a configuration that this space does not have.
        """
        for inp, result in zip(inputs, results, strict=True):
            index = self.space.find(inp.config)
            if index is None:
                raise ConfigError(f"asked to learn from configuration {inp.config}, which is not in this space; give results of this task's configurations")
            self.visited.add(index)
            self.xs.append(index)
            self.ys.append(1 / max(result.mean_cost, 1e-12))
        if len(self.xs) >= self.plan_size * (self.train_ct + 1) and any(self.ys):
            self.cost_model.fit(self.xs, self.ys, self.plan_size)
            self.train_ct += 1
            self._plan(self.cost_model)

    def load_history(self, data_set: Iterable[tuple[MeasureInput, MeasureResult]], min_seed_records: int = 500) -> None:
        """Start from a log of the same template, even for other arguments: the log provides the first plan, and counts less as more is measured.

        A log with fewer than `min_seed_records` usable records is ignored.
        """
        base = self.cost_model.spawn_base_model()
        if not base.fit_log(data_set, self.plan_size, min_seed_records):
            return
        if not self.trials:
            self._plan(base)
        self.cost_model.load_basemodel(base)

    def _next_index(self) -> int:
        while self.trial_pt < len(self.trials) and self.trials[self.trial_pt] in self.visited:
            self.trial_pt += 1
        if self.trial_pt >= len(self.trials) - int(RANDOM_SHARE * self.plan_size):
            return self.space.get_rand_index(to_exclude=self.visited, rng=self._rng)
        return self.trials[self.trial_pt]

    def _plan(self, model: Scores) -> None:
        ratio = self.diversity_filter_ratio
        found = self.model_optimizer.find_maximums(model, int(self.plan_size * (ratio or 1)), self.visited)
        self.trials = found if ratio is None else diverse(found, [self.space.point2knob(index) for index in found], self.plan_size)
        self.trial_pt = 0


def diverse(indices: Sequence[int], knobs: Sequence[Sequence[int]], number: int) -> list[int]:
    """Greedily choose `number` of the indices, each with the most knob values not chosen before; on ties the first."""
    left, chosen, seen = list(range(len(indices))), list[int](), set[tuple[int, int]]()
    while left and len(chosen) < number:
        pick = max(left, key=lambda place: (len(set(enumerate(knobs[place])) - seen), -place))
        left.remove(pick)
        seen |= set(enumerate(knobs[pick]))
        chosen.append(indices[pick])
    return chosen
