"""Splits tasks into those that a model is trained on, and those that it is tested on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansor.dataset.operators import DatasetTask
from ansor.errors import AnsorError

FOLDS = 5
HELD_OUT = 0
"""The fold that the built-in model has never seen."""
WAYS = ("task", "kind", "network")


@dataclass(frozen=True)
class Split:
    """Indices of the tasks to learn from, and of the held-out ones. name: what is held out."""

    name: str
    learned: tuple[int, ...]
    held_out: tuple[int, ...]


def fold_of(task: DatasetTask) -> int:
    """0 .. FOLDS - 1. Tasks drawn near the same size share a fold: a neighbour would give the answer away."""
    return family_number(task) % FOLDS


def family_number(task: DatasetTask, purpose: str = "") -> int:
    """A number from 0 to 255 that tasks drawn near the same size share, with any epilogue. Differs for each purpose."""
    return hashlib.sha256(f"{purpose}{task.base.partition('-epilogue')[0]}".encode()).digest()[0]


def splits(tasks: Sequence[DatasetTask], way: str) -> Iterator[Split]:
    """One split per fold, kind or network. Raises AnsorError for any other `way`."""
    if way not in WAYS:
        raise AnsorError(f"asked to split a data set by {way!r}; use one of {', '.join(WAYS)}")
    groups = [f"fold {fold_of(task)}" if way == "task" else task.kind if way == "kind" else task.network for task in tasks]
    for name in sorted(set(groups)):
        held_out = tuple(place for place, group in enumerate(groups) if group == name)
        learned = tuple(place for place, group in enumerate(groups) if group != name)
        if learned:
            yield Split(name, learned, held_out)
