"""Which operators the model in the package learned from: a figure of one of these says less than that of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from ansor.dataset.operators import DatasetTask, dataset_tasks
from ansor.dataset.split import HELD_OUT, fold_of
from ansor.ir.dag import Dag
from ansor.ir.normal.form import normal_form
from ansor.te.tensor import Tensor


def is_learned(tensors: Sequence[Tensor]) -> bool:
    """Whether the model in the package learned from programs of this declaration, however it is written, or of the same one with an epilogue."""
    return _key(tensors) in _learned()


def _key(tensors: Sequence[Tensor]) -> str:
    return Dag(normal_form(tensors)).key


@cache
def _learned() -> frozenset[str]:
    """Some seconds."""
    return frozenset(_key(form.declare()) for task in dataset_tasks() if fold_of(task) != HELD_OUT for form in _forms(task))


def _forms(task: DatasetTask) -> Iterator[DatasetTask]:
    """A task, and it without its epilogue."""
    yield task
    if dict(task.sizes).get("epilogue"):
        yield replace(task, sizes=tuple((name, 0 if name == "epilogue" else size) for name, size in task.sizes))
