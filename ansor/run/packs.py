"""Kernel packs on this machine: which programs are usable, how much speed they are expected to lose here, and remeasuring a few of them.

The expectation compares two programs of a task by the same model: the packed program that was fastest where it was measured, and the model's own pick
here. A search finds what its model overrates, so the loss tends to be overstated.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from ansor.cost_model.base import CostModel
from ansor.errors import AnsorError, RecordError
from ansor.measure.failure import Failure
from ansor.measure.machine_trouble import check_trouble
from ansor.measure.measurer import Candidate, Measurement, Measurer
from ansor.measure.new_record import Trial, make_record
from ansor.measure.nothing_recorded import nothing_for
from ansor.measure.pack import Pack, PackedTask, facts_of, make_pack, tasks_of
from ansor.measure.record import Header, Loaded, Record, RecordFile, load, make_header
from ansor.measure.record_target import difference, is_for, is_of, options_text, record_target
from ansor.run.refused import broken_limits
from ansor.run.scoring_model import NamedModel
from ansor.run.zero_tuning import log_scores, pick, picking_model
from ansor.search.tuner import Outcome
from ansor.support.text import listed
from ansor.targets.base import LOCAL, Target
from ansor.tasks.recorded import outcomes_of
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.task import SearchTask

ESTIMATE = "the estimate"
NAME_IT = "name its network or operator with --of, or pass its tasks"

Model: TypeAlias = "CostModel | str | None"
"""The model that scores programs: a model, 'package', or None for the best available one."""


@dataclass(frozen=True)
class Expected:
    """A task of a pack on this machine.

    programs: the number of packed programs; usable: those that can be used here, the originally fastest first; left_out: the others, by reason. cost: the
    original cost of the fastest usable one. share: its speed relative to the model's pick here, by the model; None without a usable one. here: costs of the
    remeasured programs, None for one that failed.
    """

    task: SearchTask
    uses: float
    programs: int
    usable: tuple[Outcome, ...]
    left_out: dict[str, int]
    cost: float | None
    share: float | None
    here: tuple[float | None, ...] = ()


@dataclass(frozen=True)
class Imported:
    """A pack on this machine. tasks: those with programs in the pack; others: names of the other workloads in it; missing: tasks without programs in it.

    away: what differs between the pack's machine and this one, "" if its times count here. model: the name of the model behind `share`. written: the number
    of records added.
    """

    pack: Pack
    target: Target
    tasks: tuple[Expected, ...]
    others: tuple[str, ...]
    missing: tuple[str, ...]
    away: str
    model: str
    written: int = 0

    @property
    def share(self) -> float | None:
        """The speed of all packed programs relative to the model's picks here, by the model, weighted by their uses; None without a usable one."""
        parts = [(one.uses * one.cost, one.share) for one in self.tasks if one.cost is not None and one.share is not None]
        return sum(cost * share for cost, share in parts) / sum(cost for cost, _ in parts) if parts else None


def pack_records(files: Sequence[str | Path], target: Target | None, tasks: Sequence[tuple[SearchTask, float]] | None, *, best: int, of: str) -> Pack:
    """The best programs in record files, of some tasks and their uses or of all workloads; with a target, those measured on this machine if there are any."""
    loaded = [load(file) for file in files]
    records = [record for one in loaded for record in one.records if record.costs and (target is None or is_for(record.target, target))]
    packed = tasks_of(loaded)
    if tasks is not None:
        keys = {key: task.workload_key for task, _ in tasks for key in task.workload_keys}
        records = [record._replace(workload=keys[record.workload]) for record in records if record.workload in keys]
        packed = [PackedTask(task.workload_key, task.name, float(uses)) for task, uses in tasks]
    if not records and tasks and target is not None:
        raise nothing_for(of or listed([task.name for task, _ in tasks]), target, *files)
    here = [record for record in records if target is not None and is_of(record.target, target)]
    records = [record._replace(target=record_target(target)) for record in here] if here and target is not None else records
    devices = Counter((record.device, record.unit) for record in records)
    wanted = max(devices, key=devices.__getitem__, default=None)
    records = [record for record in records if (record.device, record.unit) == wanted]
    facts = facts_of(_last_header(loaded))
    return make_pack(records, packed, [*facts, *(_own_facts(target) if here and target is not None else [])], best=best, of=of)


def _last_header(loaded: Sequence[Loaded]) -> Header | None:
    return next((header for one in reversed(loaded) for header in reversed(one.headers)), None)


def _own_facts(target: Target) -> list[tuple[str, str]]:
    """Facts about this machine, which measured the programs, that headers do not hold."""
    hardware = target.hardware
    caches = " ".join(f"{size >> 10}K" for size in hardware.caches.sizes if size)
    return [("instructions", " ".join(sorted(hardware.features))), ("vector_bytes", str(hardware.vector_bytes)), ("caches", caches)]


def expect(pack: Pack, tasks: Sequence[tuple[SearchTask, float]], model: Model = None) -> Imported:
    """What a pack is worth for tasks of one target and their uses. Nothing is measured. Raises RecordError if it has no program of any of them."""
    target = tasks[0][0].target
    known = {key for task, _ in tasks for key in task.workload_keys}
    others = tuple(one.name or one.workload[:8] for one in pack.tasks if one.workload not in known)
    packed = {one.workload for one in pack.tasks}
    held = [(task, uses) for task, uses in tasks if packed & set(task.workload_keys)]
    if not held:
        raise RecordError(f"asked to import a pack of {pack.of or listed(others)}, which has no program of {tasks[0][0].name}; {NAME_IT}")
    scorer = picking_model(target, model)
    missing = tuple(task.name for task, _ in tasks if not packed & set(task.workload_keys))
    found = tuple(_expected(task, uses, pack.programs(task.workload_keys), scorer, model) for task, uses in held)
    return Imported(pack, target, found, others, missing, _away(pack, target), ESTIMATE if scorer is None else scorer.name)


def _away(pack: Pack, target: Target) -> str:
    if is_of(pack.target, target):
        return ""
    return difference(pack.target, target) if is_for(pack.target, target) else f"made for {options_text(pack.target)}, here {target}"


def _expected(task: SearchTask, uses: float, records: Sequence[Record], scorer: NamedModel | None, model: Model) -> Expected:
    outcomes = [_usable(task, record, outcome) for record, outcome in zip(records, outcomes_of(task, records), strict=True)]
    usable = tuple(outcome for outcome in outcomes if isinstance(outcome, Outcome))
    left_out = Counter(outcome for outcome in outcomes if isinstance(outcome, str))
    share = None
    if usable:
        own, first = pick(task, model).program, usable[0].pick
        share = float(np.exp(_score(scorer, task.spaces[first.space], first.row) - _score(scorer, SketchSpace(own.sketch, task.target), own.row)))
    return Expected(task, uses, len(records), usable, dict(left_out), usable[0].cost if usable else None, share)


def _usable(task: SearchTask, record: Record, outcome: Outcome | str) -> Outcome | str:
    """The outcome, or why the program cannot be used here."""
    lacking = [name for name in _instructions(record) if name not in {one.name for one in task.target.intrinsics}]
    if lacking:
        return f"it needs {lacking[0]}, which {task.target} does not have"
    if isinstance(outcome, Outcome):
        space = task.spaces[outcome.pick.space]
        if not space.legal(np.asarray([outcome.pick.row], np.int64).reshape(1, -1))[0]:
            broken = listed([f"'{name}'" for name in broken_limits(space.sketch.lower_row(outcome.pick.row), task.target)])
            return f"it breaks the limit {broken} of {task.target}" if broken else "its values are not searched here"
    return outcome


def _instructions(record: Record) -> list[str]:
    """The names of the instructions that a program uses: the last entries of its `TE` steps."""
    steps = json.loads(json.dumps(record.sketch))
    return [step[-1] for step in steps if isinstance(step, list) and len(step) > 2 and step[0] == "TE" and isinstance(step[-1], str)]


def _score(scorer: NamedModel | None, space: SketchSpace, row: Sequence[int]) -> float:
    return float(log_scores(scorer, space.features(np.asarray([row], np.int64).reshape(1, -1)))[0])


def keep(found: Imported, records: str | Path) -> Imported:
    """Add the packed programs, with their times, that a record file lacks. Raises RecordError if their times do not count here."""
    if found.away:
        raise RecordError(f"asked to add the times of a pack to {records}, but they do not count here: {found.away}; measure some again with --measure N")
    wanted = [record for one in found.tasks for record in found.pack.programs(one.task.workload_keys)]
    have = {_program(record) for record in load(records).records if record.costs} if Path(records).exists() else set()
    new = [record for record in wanted if _program(record) not in have]
    names = {one.task.workload_key: one.task.name for one in found.tasks}
    with RecordFile(records, make_header(found.target.toolchain(), names=names)) as file:
        for record in new:
            file.append(record)
    return replace(found, written=len(new))


def _program(record: Record) -> tuple[object, ...]:
    return record.workload, record.target, record.algorithm, record.sketch, record.row, record.device


def measured(found: Imported, most: int, records: str | Path, measurer: Measurer) -> Imported:
    """Measure the first programs of each task here and add them to a record file. Raises MachineTrouble when the machine is at fault."""
    names = {one.task.workload_key: one.task.name for one in found.tasks}
    tasks = []
    with RecordFile(records, make_header(measurer.toolchain, names=names)) as file:
        for one in found.tasks:
            costs = []
            for outcome, measurement in zip(one.usable[:most], _measurements(one, most, measurer), strict=True):
                check_trouble(measurement.failure)
                file.append(_record(one.task, outcome, measurement, measurer.model))
                costs.append(measurement.cost if measurement.failure is None else None)
            tasks.append(replace(one, here=tuple(costs)))
    return replace(found, tasks=tuple(tasks), written=sum(len(one.here) for one in tasks))


def _measurements(one: Expected, most: int, measurer: Measurer) -> list[Measurement]:
    """Measurements in the order of the programs; a program that cannot be written as C counts as a failure."""
    found: dict[int, Measurement] = {}
    candidates: dict[int, Candidate] = {}
    for place, outcome in enumerate(one.usable[:most]):
        try:
            source = one.task.source(one.task.spaces[outcome.pick.space].sketch, outcome.pick.row, f"candidate{place}")
            candidates[place] = Candidate(one.task.measure_task, source)
        except AnsorError as error:
            found[place] = Measurement(failure=Failure("instantiation", str(error)), unit=measurer.unit)
    with closing(measurer.measure(list(candidates.values()))) as results:
        found.update(zip(candidates, results, strict=True))
    return [found[place] for place in sorted(found)]


def _record(task: SearchTask, outcome: Outcome, measurement: Measurement, device: str = LOCAL) -> Record:
    space = task.spaces[outcome.pick.space]
    trial = Trial(task.workload_key, record_target(task.target), space.sketch.to_json(), outcome.pick.row, space.algorithm)
    return make_record(measurement, trial, device=device)
