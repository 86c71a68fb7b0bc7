"""The best recorded program of a task, reproduced from its schedule: loops, steps in words, C code, and why it is fast."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.explain.explanation import explain, moved_bytes
from ansor.explain.text import explanation_text
from ansor.explain.values import AxisTiles, Program, Roof
from ansor.measure.record_target import difference, is_for, is_of
from ansor.report.values import CostScope, Winner
from ansor.run.kernels import schedule_text
from ansor.run.states import best_of_recorded
from ansor.tasks.recorded import RecordedTrials, recorded_outcomes
from ansor.tasks.task import SearchTask


def winner_of(task: SearchTask, files: Sequence[str], where: CostScope, roof: Roof | None = None) -> Winner | str:
    """The best program of a task in the files, or why it cannot be shown."""
    if not is_for(where.target, task.target):
        return f"Its trials are not for {task.target}."
    if not is_of(where.target, task.target):
        return f"The best program is not shown here: the trials are {difference(where.target, task.target)}."
    found = [recorded_outcomes(task, path, (where.device, where.unit)) for path in files]
    best = best_of_recorded(task, RecordedTrials([pair for one in found for pair in one.known], {}, where.unit))
    if best is None:
        return "No valid trial can be reproduced by this version."
    peak, bandwidth = (None, None) if roof is None else (round(roof.gflops, 1), round(roof.gbytes, 1))
    one = explain(task, [outcome for recorded in found for outcome, _ in recorded.known], peak_gflops=peak, bandwidth_gbytes=bandwidth, unit=where.unit)
    texts = (
        ("Loops", schedule_text(task, best)),
        ("C", task.source(best.sketch, best.row).text),
        ("Why it is fast", explanation_text(one)),
    )
    return Winner(task.flop, moved_bytes(task.dag), best.cost, _schedule(one.best), tuple(map(_tile, _cut(one.best.tiles))), texts)


def _schedule(program: Program) -> tuple[tuple[str, tuple[str, ...]], ...]:
    stages = dict.fromkeys(fact.stage for fact in program.facts)
    return tuple((stage, tuple(fact.text for fact in program.facts if fact.stage == stage)) for stage in stages)


def _cut(tiles: Sequence[AxisTiles]) -> list[AxisTiles]:
    return [one for one in tiles if one.extent > 1]


def _tile(one: AxisTiles) -> tuple[str, str, str]:
    return one.stage, one.axis, f"{one.extent} = {' × '.join(map(str, one.lengths))}"
