"""Whether the sketches of a task follow from this package alone: rules, algorithms and kinds of targets may be of other packages, or of the user."""

from __future__ import annotations

from ansor.algorithms.base import DIRECT, algorithm_named
from ansor.algorithms.builtin import registered
from ansor.errors import TargetError
from ansor.ir.dag import Dag
from ansor.rules.registry import resolve
from ansor.targets.base import BUILTIN, Target, parse_target
from ansor.tasks.task import SearchTask

OURS = "ansor"
"""The package whose files `package_state` tells apart."""


def is_ours(task: SearchTask) -> bool:
    """Whether the declaration, the text of the target and the files of this package say which sketches it has."""
    if task.templates or task.pins or task.algorithms is not None or task.rules != task.target.rules:
        return False
    return is_target_ours(task.target)


def is_target_ours(target: Target) -> bool:
    """The same for a task that has all rules and algorithms of its target, and nothing else."""
    if target.kind not in BUILTIN or not _is_its_text(target):
        return False
    makers = [*map(type, resolve(target.rules)), *map(algorithm_named, registered(target.algorithms))]
    return all(one.__module__.partition(".")[0] == OURS for one in makers)


def _is_its_text(target: Target) -> bool:
    try:
        return target == parse_target(str(target))
    except TargetError:  # values that no text can have
        return False


def declaration_named(task: SearchTask, algorithm: str) -> Dag | None:
    """The declaration that the sketches of an algorithm are of, "" for the task's own; None where it has none."""
    if algorithm == DIRECT:
        return task.dag
    return next((one.dag for one in task.alternatives if one.name == algorithm), None)
