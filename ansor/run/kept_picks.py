"""Caches programs that were picked without measuring in the cache folder, so that the same pick in another process needs no search, and no sketches.

The key of a pick is everything that it depends on: the computation, its names, target, processor, model, seed, and the files of this package, from which the
sketches follow. Where they also follow from what is not in these files, they are part of the key. The value is a sketch and a row of numbers, with a digest; if
that fits no declaration of the task, a program is picked again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path

from ansor.errors import AnsorError
from ansor.run.machine_model import identity
from ansor.run.states import Best, Guess
from ansor.schedule.sketch_data import sketch_data, sketch_of
from ansor.support import safe_files
from ansor.support.package_state import package_state
from ansor.support.settings import cache_folders, cache_part
from ansor.targets.base import BUILTIN, Target
from ansor.tasks.origins import origin_of
from ansor.tasks.own_parts import declaration_named, is_ours
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.task import SearchTask

ENABLED = True
"""Tests of the search turn it off."""

FOLDER, SUFFIX = "picks", ".json"
DIGITS = 32
MOST = 8000
"""The most files in the folder, two per pick: a change of this package's files makes all of them useless."""


def kept_pick(task: SearchTask, model: str, seed: int, pick: Callable[[], Guess]) -> Guess:
    """The result of `pick`, cached. model: the scorer's name in records."""
    if not ENABLED or task.target.kind not in BUILTIN:  # kinds of other packages: their files are not looked at
        return pick()
    name = _name(task, model, seed)
    with suppress(AnsorError, OSError, ValueError, LookupError, TypeError):  # or of no form that we write
        for folder in cache_folders(FOLDER):
            found = _read(folder / name, task)
            if found is not None:
                return found
    made = pick()
    with suppress(AnsorError, OSError):  # a cache that cannot be written to is ignored
        _keep(name, made, task.spaces)
    return made


def is_kept(task: SearchTask, model: str, seed: int) -> bool:
    """Whether the pick of a task is in the cache. model: the scorer's name in records."""
    name = _name(task, model, seed)
    with suppress(AnsorError, OSError):
        return any(safe_files.kept(folder / name, SUFFIX) is not None for folder in cache_folders(FOLDER))
    return False


def _name(task: SearchTask, model: str, seed: int) -> str:
    sketches = None if is_ours(task) else [(space.algorithm, space.sketch.dag.key, space.name) for space in task.spaces]
    words = (task.workload_key, str(task.dag), sketches, *told(task.target), model, seed, package_state())
    return safe_files.digest(repr(words).encode())[:DIGITS]


def told(target: Target) -> tuple[object, ...]:
    """All of a target whose kind is of this package, as values whose text is the same in every process."""
    parts = [_values(part) for part in (target.hardware, target.prior, target.dialect)]  # a board's file may have been edited
    return sorted(identity(target).items()), parts


def _values(part: object) -> object:
    """A value as text that is the same in every process."""
    if is_dataclass(part):
        return [(field.name, _values(getattr(part, field.name))) for field in fields(part)]
    if isinstance(part, tuple | list):
        return [_values(one) for one in part]
    return sorted(map(repr, part)) if isinstance(part, frozenset) else repr(part)


def _read(note: Path, task: SearchTask) -> Guess | None:
    path = safe_files.kept(note, SUFFIX)
    if path is None:
        return None
    found = json.loads(path.read_text())
    dag, row = declaration_named(task, found["algorithm"]), tuple(found["row"])
    if dag is None or dag.key != found["computation"]:
        return None
    sketch = sketch_of(dag, found["sketch"])
    if not SketchSpace(sketch, task.target).holds(row):
        return None
    return Guess(Best(sketch, row, math.inf, origin_of(found["algorithm"])), found["how"], found["confidence"])


def _keep(name: str, guess: Guess, spaces: Sequence[SketchSpace]) -> None:
    program = guess.program
    space = next((space for space in spaces if space.sketch is program.sketch), None)
    if space is None or guess.refused:
        return
    row = [int(value) for value in program.row]
    content = {"algorithm": space.algorithm, "computation": program.sketch.dag.key, "sketch": sketch_data(program.sketch), "row": row}
    folder = cache_part(FOLDER)
    safe_files.keep(folder / name, SUFFIX, json.dumps({**content, "how": guess.how, "confidence": guess.confidence}).encode())
    safe_files.make_room(folder, MOST)
