"""Trains a cost model for all operators on the programs of many tasks, before anything is measured.

Times of different operators are not comparable, so the model only learns which programs of a task are faster: the level of each task is free. Training starts
from the analytic estimate; networks, or boosted trees, correct it. Several members are averaged. Each omits different tasks, so that they disagree on
unfamiliar programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ansor.cost_model.fit_network import NetworkOptions, fit_network
from ansor.cost_model.lightgbm_model import Stage
from ansor.cost_model.network import Network
from ansor.cost_model.training_set import TrainingSet
from ansor.cost_model.trees import TreeOptions, fit_trees
from ansor.dataset.examples import Examples
from ansor.dataset.split import family_number

if TYPE_CHECKING:
    import lightgbm

MEMBERS = 3
PARTS = 6
"""Each member omits one of this many parts of the tasks."""

DRAWN = "drawn"
"""The kind of declarations drawn at random."""

NETWORK = NetworkOptions(units=128, epochs=40)
"""Options for training networks from random weights."""

FURTHER = NetworkOptions(epochs=20, learning_rate=5e-4)
"""Options for training networks further, whose sizes stay as they are."""

TREES = TreeOptions(trees=130, learning_rate=0.08, leaves=31, smallest_leaf=20, l2=1.0, features=0.5, rows=0.8)


def train_networks(examples: Sequence[Examples], options: NetworkOptions = NETWORK, begin: Sequence[Network] = ()) -> tuple[Network, ...]:
    """Train networks for all tasks together, each without one of PARTS parts of the task families. begin: networks to continue from, one each. Raises
    ValueError without tasks, and for another number of networks to continue from."""
    if begin and len(begin) != MEMBERS:
        raise ValueError(f"{len(begin)} networks to continue from, instead of {MEMBERS}")
    weighted = _weighted(examples)
    parts = [[(one.features, one.seconds) for one in _left_to(member, weighted)] for member in range(MEMBERS)]
    starts = dict(enumerate(begin))
    return tuple(fit_network(part, replace(options, seed=member), starts.get(member)) for member, part in enumerate(parts))


def train_trees(examples: Sequence[Examples], options: TreeOptions = TREES) -> Stage:
    """`train_networks` with ensembles of boosted trees."""
    return Stage(None, tuple(_fitted_trees(_left_to(member, examples), replace(options, seed=member)) for member in range(MEMBERS)))


def _weighted(examples: Sequence[Examples]) -> list[Examples]:
    """Use network operators twice if there are also declarations drawn at random, which are more numerous but less like what users tune."""
    drawn = any(one.task.kind == DRAWN for one in examples)
    return [one for one in examples for _ in range(2 if drawn and one.task.kind != DRAWN else 1)]


def _left_to(member: int, examples: Sequence[Examples]) -> Sequence[Examples]:
    """The tasks that a member learns from; all tasks if none would remain."""
    return [one for one in examples if family_number(one.task, "ensembles") % PARTS != member] or examples


def _fitted_trees(examples: Sequence[Examples], options: TreeOptions) -> lightgbm.Booster:
    known = TrainingSet()
    for number, one in enumerate(examples):
        known.add(one.features, one.seconds, np.full(len(one), number))
    features, slowness, weights = known.features(), known.slowness(), known.weights()
    tasks = np.repeat(np.arange(len(examples)), [len(one) for one in examples])
    weights = weights / np.bincount(tasks, weights)[tasks] * 100.0  # a task of 50 programs counts as much as one of 200
    base = known.shifted(features.prior_logs())
    return fit_trees(features, slowness, weights, base, options, tasks=tasks)
