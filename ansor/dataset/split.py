"""Which tasks a model learns from, and which it is asked about afterwards."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ansor.dataset.operators import DatasetTask
from ansor.errors import AnsorError

FOLDS = 5
HELD_OUT = 0
"""The fold that the model in the package has never seen."""
WAYS = ("task", "kind", "network")


@dataclass(frozen=True)
class Split:
    """Places of tasks in a list: those learned from, and those held out. name: what is held out."""

    name: str
    learned: tuple[int, ...]
    held_out: tuple[int, ...]


def fold_of(task: DatasetTask) -> int:
    """0 .. FOLDS - 1. Tasks drawn near one size are in one fold: a neighbour would give the answer away."""
    return family_number(task) % FOLDS


def family_number(task: DatasetTask, purpose: str = "") -> int:
    """A number that tasks drawn near one size share, with whatever epilogue, 0 .. 255; another one for another purpose."""
    return hashlib.sha256(f"{purpose}{task.base.partition('-epilogue')[0]}".encode()).digest()[0]


def splits(tasks: Sequence[DatasetTask], way: str) -> Iterator[Split]:
    """One split for each fold, kind or network. Raises AnsorError for another way."""
    if way not in WAYS:
        raise AnsorError(f"asked to split a data set by {way!r}; use one of {', '.join(WAYS)}")
    groups = [f"fold {fold_of(task)}" if way == "task" else task.kind if way == "kind" else task.network for task in tasks]
    for name in sorted(set(groups)):
        held_out = tuple(place for place, group in enumerate(groups) if group == name)
        learned = tuple(place for place, group in enumerate(groups) if group != name)
        if learned:
            yield Split(name, learned, held_out)
