"""Fits the built-in model to this machine: measures many kinds of operators, trains its networks further on them, and tests the result on others.

Training includes the built-in model's predictions for the machines it learned (distillation), so that it does not forget them while learning from little data.
A fifth of the tasks, which the built-in model has not seen either, is held out: only an improvement on these counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ansor.cost_model.fit_network import NetworkOptions
from ansor.cost_model.network import Network
from ansor.cost_model.network_model import NetworkModel
from ansor.cost_model.pretrained import learned_targets, pretrained
from ansor.cost_model.training_set import estimated_scores
from ansor.dataset.collect import Done, collect, records_of
from ansor.dataset.evaluate import Quality, quality
from ansor.dataset.examples import Examples, load_examples
from ansor.dataset.operators import DatasetTask
from ansor.dataset.split import FOLDS, HELD_OUT, fold_of
from ansor.dataset.teach import taught
from ansor.dataset.train import FURTHER, train_networks
from ansor.measure.record import load
from ansor.measure.record_target import record_target
from ansor.targets.base import Target, parse_target

PASSES = (12, 24, 48, 96)
"""The number of programs of each task after each pass over all tasks: a short run measures few programs of many operators, a long one more of each."""

FEWEST = 4
"""With fewer valid programs, a task cannot show how well a model ranks."""

LEAST_HELD_OUT = 4
"""With fewer held-out tasks, chance decides which model is better."""

KEPT_TASKS, KEPT_PROGRAMS = 64, 32
"""The most tasks, and programs of each, with predictions of the built-in model for other machines."""


@dataclass(frozen=True)
class Tried:
    """How well each model ranks the programs of held-out tasks. before: the model in use on this machine, if any."""

    package: Quality
    fitted: Quality
    estimate: Quality
    before: Quality | None = None

    @property
    def better(self) -> bool:
        """Whether the fitted model is better than the built-in one, and than the one in use."""
        return all(is_better(self.fitted, one) for one in (self.package, self.before) if one is not None)


def is_better(one: Quality, other: Quality) -> bool:
    """Whether `one` orders more pairs correctly, and its first choices are no worse overall."""
    return one.tasks > 0 and one.pairwise > other.pairwise and one.peak1 + one.peak5 >= other.peak1 + other.peak5


def spread(tasks: Sequence[DatasetTask], seed: int = 0) -> list[DatasetTask]:
    """The tasks in measuring order: kinds alternate, sizes of networks come before others, and one task in FOLDS is held out."""
    rng = np.random.default_rng(seed)
    learned = _in_turn([task for task in tasks if fold_of(task) != HELD_OUT], rng)
    held_out = _in_turn([task for task in tasks if fold_of(task) == HELD_OUT], rng)
    places = [(place + (place + FOLDS - 3) // (FOLDS - 1), task) for place, task in enumerate(learned)]
    places += [(FOLDS * place + 2, task) for place, task in enumerate(held_out)]
    return [task for _, task in sorted(places, key=lambda one: one[0])]


def _in_turn(tasks: Sequence[DatasetTask], rng: np.random.Generator) -> list[DatasetTask]:
    kinds: dict[str, list[DatasetTask]] = {}
    for task in tasks:
        kinds.setdefault(task.kind, []).append(task)
    ranked: list[tuple[int, int, DatasetTask]] = []
    for turn, kind in enumerate(rng.permutation(sorted(kinds)).tolist()):
        drawn = [kinds[kind][place] for place in rng.permutation(len(kinds[kind])).tolist()]
        drawn.sort(key=lambda task: task.base != task.name)
        ranked += [(place, turn, task) for place, task in enumerate(drawn)]
    return [task for _, _, task in sorted(ranked, key=lambda one: one[:2])]


def measure(tasks: Sequence[DatasetTask], target: Target, folder: Path, seconds: float, *, done: Done = lambda task, states: None, seed: int = 0) -> None:
    """Measure programs of the tasks in this order, for that long, continuing the last run on this folder. Ctrl-C propagates."""
    end = time.monotonic() + seconds
    for trials in PASSES:
        left = end - time.monotonic()
        waiting = [task for task in tasks if recorded(task, target, folder) < trials]
        if left > 0 and waiting:
            collect(waiting, target, folder, trials=trials, seconds=left, seed=seed, done=done)


def recorded(task: DatasetTask, target: Target, folder: Path) -> int:
    """The number of a task's programs in the folder, for this target on this machine."""
    file = records_of(folder, task)
    if not file.exists():
        return 0
    wanted = record_target(target)
    return sum(record.target == wanted for record in load(file).records)


def examples(tasks: Sequence[DatasetTask], target: Target, folder: Path) -> tuple[list[Examples], list[Examples]]:
    """The measured examples to learn from, and the held-out ones."""
    found = [one for one in load_examples(tasks, target, folder) if np.isfinite(one.seconds).sum() >= FEWEST]
    return [one for one in found if fold_of(one.task) != HELD_OUT], [one for one in found if fold_of(one.task) == HELD_OUT]


def fit(learned: Sequence[Examples], options: NetworkOptions = FURTHER) -> tuple[Network, ...]:
    """Train the built-in networks further on these tasks and on their own predictions for the machines they learned. Raises ValueError without tasks."""
    package = pretrained()
    return train_networks([*learned, *_known([one.task for one in learned], package)], options, package.networks)


def _known(tasks: Sequence[DatasetTask], package: NetworkModel) -> Iterator[Examples]:
    targets = [parse_target(text) for text in learned_targets()]
    for place, target in enumerate(targets):
        yield from taught(tasks[:KEPT_TASKS][place :: len(targets)], target, package, programs=KEPT_PROGRAMS)


def tried(networks: Sequence[Network], held_out: Sequence[Examples], before: NetworkModel | None = None) -> Tried:
    """Compare the networks with the built-in model, the estimate, and the model in use."""
    earlier = None if before is None else quality(before.predict, held_out)
    package, fitted = quality(pretrained().predict, held_out), quality(NetworkModel(networks).predict, held_out)
    return Tried(package, fitted, quality(estimated_scores, held_out), earlier)
