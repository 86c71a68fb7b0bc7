"""Train on the programs of many tasks what one cost model for all operators knows before anything is measured.

Times of different operators do not compare, so only what is faster within a task is learned: each task's level is free. The analytic estimate is where
learning starts; trees correct it. Several ensembles are trained on different programs and averaged; where they disagree, a score means little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ansor.cost_model.lightgbm_model import Stage
from ansor.cost_model.training_set import TrainingSet
from ansor.cost_model.trees import TreeOptions, fit_trees
from ansor.dataset.examples import Examples

MEMBERS = 2
OPTIONS = TreeOptions(trees=200, learning_rate=0.08, leaves=31, smallest_leaf=20, l2=1.0, features=0.5, rows=0.7)


def train_stage(examples: Sequence[Examples], *, members: int = MEMBERS, options: TreeOptions = OPTIONS) -> Stage:
    """Trees for all tasks together. Raises ValueError without a task."""
    known = TrainingSet()
    for number, one in enumerate(examples):
        known.add(one.features, one.seconds, np.full(len(one), number))
    features, slowness, weights = known.features(), known.slowness(), known.weights()
    tasks = np.repeat(np.arange(len(examples)), [len(one) for one in examples])
    weights = weights / np.bincount(tasks, weights)[tasks] * 100.0  # a task of 50 programs counts as much as one of 200
    base = known.shifted(features.prior_logs())
    ensembles = [fit_trees(features, slowness, weights, base, replace(options, seed=member), tasks=tasks) for member in range(members)]
    return Stage(None, tuple(ensembles))
