"""Fits the package's model to this machine: measures a spread of operators, trains its networks further on them, and tries the result on others.

What the package's model says of the machines that it learned from is learned along (distillation), so that little data do not make it forget the rest.
A fifth of the tasks, those that the package's model has not seen either, is held out: only what is better there is worth keeping.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ansor.cost_model.fit_network import NetworkOptions
from ansor.cost_model.network import Network
from ansor.cost_model.network_model import NetworkModel
from ansor.cost_model.pretrained import learned_targets, pretrained
from ansor.cost_model.training_set import estimated_scores
from ansor.dataset.collect import collect, records_of
from ansor.dataset.evaluate import Quality, quality
from ansor.dataset.examples import Examples, load_examples
from ansor.dataset.operators import DatasetTask
from ansor.dataset.split import FOLDS, HELD_OUT, fold_of
from ansor.dataset.teach import taught
from ansor.dataset.train import train_networks
from ansor.measure.record import load
from ansor.measure.record_target import record_target
from ansor.run.states import TaskState
from ansor.targets.base import Target, parse_target

PASSES = (12, 24, 48, 96)
"""Programs of each task after each time through all of them: a short run has few programs of many operators, a long one more."""

FURTHER = NetworkOptions(epochs=20, learning_rate=5e-4)
"""How networks that know something already are trained further."""

FEWEST = 4
"""Valid programs below which a task says nothing of how they are ranked."""

LEAST_HELD_OUT = 4
"""Tasks held out below which it is chance which model is better."""

KEPT_TASKS, KEPT_PROGRAMS = 64, 32
"""Tasks at most, and programs of each, of which is learned along what the package's model says of other machines."""

Done = Callable[[DatasetTask, TaskState], None]


@dataclass(frozen=True)
class Tried:
    """How well each ranks the programs of held-out tasks. before: the model of this machine that was in use, if there was one."""

    package: Quality
    fitted: Quality
    estimate: Quality
    before: Quality | None = None

    @property
    def better(self) -> bool:
        """Whether what was fitted is better than the package's model, and than what was in use."""
        return all(is_better(self.fitted, one) for one in (self.package, self.before) if one is not None)


def is_better(one: Quality, other: Quality) -> bool:
    """More pairs in order, and first choices that are no worse on the whole."""
    return one.tasks > 0 and one.pairwise > other.pairwise and one.peak1 + one.peak5 >= other.peak1 + other.peak5


def spread(tasks: Sequence[DatasetTask], seed: int = 0) -> list[DatasetTask]:
    """The order in which they are measured: kinds take turns, sizes of networks come before others, and one task in FOLDS is of those held out."""
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


def measure(tasks: Sequence[DatasetTask], target: Target, folder: Path, seconds: float, *, done: Done = lambda task, state: None, seed: int = 0) -> None:
    """Measure programs of the tasks in this order, for so long, from where the last run on this folder was stopped. Ctrl-C passes through."""
    end = time.monotonic() + seconds
    for trials in PASSES:
        left = end - time.monotonic()
        waiting = [task for task in tasks if recorded(task, target, folder) < trials]
        if left > 0 and waiting:
            collect(waiting, target, folder, trials=trials, seconds=left, seed=seed, done=done)


def recorded(task: DatasetTask, target: Target, folder: Path) -> int:
    """Programs of a task that the folder has, of this target on this machine."""
    file = records_of(folder, task)
    if not file.exists():
        return 0
    wanted = record_target(target)
    return sum(record.target == wanted for record in load(file).records)


def examples(tasks: Sequence[DatasetTask], target: Target, folder: Path) -> tuple[list[Examples], list[Examples]]:
    """What was measured of tasks to learn from, and of those held out."""
    found = [one for one in load_examples(tasks, target, folder) if np.isfinite(one.seconds).sum() >= FEWEST]
    return [one for one in found if fold_of(one.task) != HELD_OUT], [one for one in found if fold_of(one.task) == HELD_OUT]


def fit(learned: Sequence[Examples], options: NetworkOptions = FURTHER) -> tuple[Network, ...]:
    """The package's networks, trained further on these tasks and on what they say of the machines that they know. Raises ValueError without a task."""
    package = pretrained()
    return train_networks([*learned, *_known([one.task for one in learned], package)], options, package.networks)


def _known(tasks: Sequence[DatasetTask], package: NetworkModel) -> Iterator[Examples]:
    targets = [parse_target(text) for text in learned_targets()]
    for place, target in enumerate(targets):
        yield from taught(tasks[:KEPT_TASKS][place :: len(targets)], target, package, programs=KEPT_PROGRAMS)


def tried(networks: Sequence[Network], held_out: Sequence[Examples], before: NetworkModel | None = None) -> Tried:
    """The networks beside the package's model, the estimate, and the model that was in use."""
    earlier = None if before is None else quality(before.predict, held_out)
    package, fitted = quality(pretrained().predict, held_out), quality(NetworkModel(networks).predict, held_out)
    return Tried(package, fitted, quality(estimated_scores, held_out), earlier)
