"""An earlier model's predictions for a target, as training examples for the next model.

It lets a model for this machine keep what an earlier one learned on another machine (distillation; Hinton, Vinyals, Dean, 2015): programs of the
data set's tasks, described for that target, with the times that the earlier model predicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.base import CostModel
from ansor.dataset.collect import SEARCH, search_task
from ansor.dataset.examples import Examples
from ansor.dataset.operators import DatasetTask
from ansor.ir.feature_rows import FeatureRows, join
from ansor.search.evolution import SearchGoal, evolve
from ansor.search.population import sample_population
from ansor.search.sampling import SampledSpace
from ansor.targets.base import Target


def taught(tasks: Sequence[DatasetTask], target: Target, model: CostModel, *, programs: int, seed: int = 0) -> Iterator[Examples]:
    """Examples of each task with a legal program: half random programs, half the model's best from a short evolution, as in a data set."""
    for task in tasks:
        features = _programs(task, target, model, programs, np.random.default_rng(seed))
        if features is not None:
            yield Examples(task, features, _seconds(model, features))


def _programs(task: DatasetTask, target: Target, model: CostModel, count: int, rng: np.random.Generator) -> FeatureRows | None:
    spaces = [SampledSpace(space) for space in search_task(task, target).spaces]
    chances, nothing = np.ones(len(spaces)), [np.zeros(0, np.uint64)] * len(spaces)
    start = sample_population(spaces, SEARCH.evolution.population, chances, rng, nothing)
    if not len(start):
        return None
    hall = evolve(spaces, model.predict, start, SearchGoal.anywhere(spaces, count - count // 2), rng, SEARCH.evolution)
    best = hall.take(np.sort(np.argsort(-hall.scores, kind="stable")[: count - count // 2]))
    drawn = start.take(np.sort(rng.permutation(len(start))[: count // 2]))
    return join([best.features, drawn.features(spaces)]) if len(drawn) else best.features


def _seconds(model: CostModel, features: FeatureRows) -> NDArray[np.float64]:
    """Times up to a factor per task, which training ignores. Raises ValueError for an untrained model."""
    scores = model.predict(features)
    if not (scores > 0).all():
        raise ValueError("an untrained model cannot be used for distillation")
    return 1.0 / scores
