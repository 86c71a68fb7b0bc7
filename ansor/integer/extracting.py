"""Extracts the tuning tasks of an int8 network, to tune several networks or boards in one run."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.integer.compiling import tuning_tasks
from ansor.integer.firmware import limits_of
from ansor.integer.reading import network_of
from ansor.run.choosing import is_tunable
from ansor.run.refused import impossible
from ansor.support.loaded import needs_torch
from ansor.support.names import known_names
from ansor.support.notices import warn
from ansor.targets.base import Target, parse_target
from ansor.tasks.arguments import option_or_similar
from ansor.tasks.extracted import ExtractedTasks


@needs_torch
@known_names(hint=option_or_similar)
def extract_int8_tasks(
    model: object, calibration: Sequence[object] = (), target: str | Target | None = None, *, ram_bytes: int | None = None, flash_bytes: int | None = None,
    arena_bytes: int = 0,
) -> ExtractedTasks:  # fmt: skip
    """The tasks that `compile_int8` tunes when it is called with the same arguments, and how often the network runs each. `tune_tasks` tunes them, alone or
    together with those of other boards; `compile_int8` with the same `records` then uses the programs that it found.

    Tasks that the target has too little memory to measure are left out, with a warning. Raises ModelError if the model cannot be read or does not fit.
    """
    target = parse_target("cpu -threads=1" if target is None else target)
    limits = limits_of(target, ram_bytes, flash_bytes, arena_bytes)
    network = network_of(model, calibration)
    limits.check_before(network, target.alignment)
    tasks, weights = [], []
    for task, weight in tuning_tasks(network, target, limits):
        if not is_tunable(task):
            continue
        why = impossible(task)
        if why:
            warn(f"{why}; it is left out")
            continue
        tasks.append(task)
        weights.append(weight)
    return ExtractedTasks(tasks, weights)
