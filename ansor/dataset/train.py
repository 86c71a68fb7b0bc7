"""Train on the programs of many tasks what one cost model for all operators knows before anything is measured.

Times of different operators do not compare, so only what is faster within a task is learned: each task's level is free. The analytic estimate is where
learning starts; trees correct it. Several ensembles are averaged. Each of them leaves out other tasks, so that they disagree where little is known: on tasks
held out, the program that none of three finds much slower than its favourite had 0.89 of the speed of the best, 0.87 where they had learned from the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ansor.cost_model.lightgbm_model import Stage
from ansor.cost_model.torch_model import TorchModel
from ansor.cost_model.training_set import TrainingSet
from ansor.cost_model.trees import TreeOptions, fit_trees
from ansor.dataset.examples import Examples
from ansor.dataset.split import family_number
from ansor.ir.feature_rows import join

if TYPE_CHECKING:
    import lightgbm

MEMBERS = 3
STEPS = 4000
"""Of the network: so many batches of 256 programs."""
OPTIONS = TreeOptions(trees=130, learning_rate=0.08, leaves=31, smallest_leaf=20, l2=1.0, features=0.5, rows=0.8)


def train_stage(examples: Sequence[Examples], options: TreeOptions = OPTIONS) -> Stage:
    """Trees for all tasks together, each ensemble without one in MEMBERS families of tasks. Raises ValueError without a task."""
    return Stage(None, tuple(_fitted(_left_to(member, examples), replace(options, seed=member)) for member in range(MEMBERS)))


def train_network(examples: Sequence[Examples], steps: int | None = None) -> TorchModel:
    """The small network on the same programs, with the same labels: the other kind of model that there is. Raises ValueError without a task."""
    if not examples:
        raise ValueError("a network needs a task to learn from")
    model = TorchModel(steps=STEPS if steps is None else steps, informed=True)
    tasks = np.repeat(np.arange(len(examples)), [len(one) for one in examples])
    model.update(join([one.features for one in examples]), np.concatenate([one.seconds for one in examples]), tasks)
    return model


def _left_to(member: int, examples: Sequence[Examples]) -> Sequence[Examples]:
    """The tasks that an ensemble learns from: all of them where nothing would be left."""
    return [one for one in examples if family_number(one.task, "ensembles") % MEMBERS != member] or examples


def _fitted(examples: Sequence[Examples], options: TreeOptions) -> lightgbm.Booster:
    known = TrainingSet()
    for number, one in enumerate(examples):
        known.add(one.features, one.seconds, np.full(len(one), number))
    features, slowness, weights = known.features(), known.slowness(), known.weights()
    tasks = np.repeat(np.arange(len(examples)), [len(one) for one in examples])
    weights = weights / np.bincount(tasks, weights)[tasks] * 100.0  # a task of 50 programs counts as much as one of 200
    base = known.shifted(features.prior_logs())
    return fit_trees(features, slowness, weights, base, options, tasks=tasks)
