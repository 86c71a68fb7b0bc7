"""The tuning tasks of a network."""

from __future__ import annotations

from typing import NamedTuple

from ansor.support.text import counted
from ansor.tasks.task import SearchTask


class ExtractedTasks(NamedTuple):
    """The tuning tasks of a network, and how often it runs each: `tasks, weights = extracted`, and `tune_tasks(extracted)`."""

    tasks: list[SearchTask]
    weights: list[int]

    def __repr__(self) -> str:
        shown = ", ".join(f"{weight} x {task.name}" for task, weight in zip(self.tasks, self.weights, strict=True))
        return f"ExtractedTasks({counted(len(self.tasks), 'task')}: {shown})"
