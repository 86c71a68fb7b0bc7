"""What the built-in model learned from. A result on an operator that it has seen says less than one on an operator that it has not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from ansor.dataset.family import reductions
from ansor.dataset.operators import DatasetTask, dataset_tasks
from ansor.dataset.split import HELD_OUT, fold_of
from ansor.ir.dag import Dag
from ansor.ir.normal.form import normal_form
from ansor.te.tensor import Tensor

OPERATOR, FAMILY, PARTS, NOTHING = "operator", "family", "parts", "nothing"


def known_to_model(tensors: Sequence[Tensor]) -> str:
    """How much of a declaration the built-in model learned from. OPERATOR: programs of it, as in `is_learned`; FAMILY: programs of its family in other sizes;
    PARTS: each of its reductions, in other families; NOTHING: less than that. What the declaration computes decides, not its names."""
    if is_learned(tensors):
        return OPERATOR
    found = reductions(tensors)
    if found in learned_families():
        return FAMILY
    return PARTS if _parts(found) <= _learned_parts() else NOTHING


@cache
def learned_families() -> frozenset[tuple[str, ...]]:
    """The families of the built-in model's training tasks. Takes a few seconds."""
    return frozenset(reductions(task.declare()) for task in _learned_tasks())


@cache
def _learned_parts() -> frozenset[str]:
    return frozenset[str]().union(*map(_parts, learned_families()))


def _parts(found: Iterable[str]) -> frozenset[str]:
    """The reductions, without distinguishing inputs from results of other reductions."""
    return frozenset(re.sub(r"@\d+", "", one) for one in found)


def _learned_tasks() -> Iterator[DatasetTask]:
    """All training tasks. Those that were added after the built-in model was trained count, too: its figures then say rather too little than too much."""
    return (task for task in dataset_tasks() if fold_of(task) != HELD_OUT)


def is_learned(tensors: Sequence[Tensor]) -> bool:
    """Whether the built-in model learned from programs of this declaration, in any notation, or of the same one with an epilogue."""
    return _key(tensors) in _learned()


def _key(tensors: Sequence[Tensor]) -> str:
    return Dag(normal_form(tensors)).key


@cache
def _learned() -> frozenset[str]:
    """The keys of the training tasks. Takes a few seconds."""
    return frozenset(_key(form.declare()) for task in _learned_tasks() for form in _forms(task))


def _forms(task: DatasetTask) -> Iterator[DatasetTask]:
    """A task, and the same task without its epilogue."""
    yield task
    if dict(task.sizes).get("epilogue"):
        yield replace(task, sizes=tuple((name, 0 if name == "epilogue" else size) for name, size in task.sizes))
