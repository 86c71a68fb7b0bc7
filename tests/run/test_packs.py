"""Kernel packs on this machine: nothing is measured here but two small programs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ansor
from ansor.errors import ArgumentError, RecordError, TargetError
from ansor.measure.pack import Pack, PackedTask, make_pack
from ansor.measure.record import Record, frozen, load
from ansor.run.packs import Imported, expect
from ansor.tasks.recorded import recorded_outcomes
from ansor.tasks.task import SearchTask
from ansor.zoo.operators import matmul
from tests.commands.record_files import recorded

pytestmark = pytest.mark.compiler

ONE = "cpu -threads=1"
ELSEWHERE = "cpu -mcpu=native -threads=1 (GenuineIntel family 6 model 85, features 00000000, caches 32K 1024K, zig cc 0.17)"


@pytest.fixture(scope="module")
def task() -> SearchTask:
    return SearchTask(matmul, (16, 16, 16), ONE)


@pytest.fixture
def file(tmp_path: Path, task: SearchTask) -> str:
    return recorded(tmp_path / "matmul.jsonl", task)


def changed(pack: Pack, **fields: object) -> Pack:
    records = [record._replace(**fields) for record in pack.records]  # type: ignore[arg-type]
    return make_pack(records, pack.tasks, pack.machine, best=64, of=pack.of)


def test_times_of_this_machine_are_added_once(file: str, task: SearchTask, tmp_path: Path) -> None:
    pack = ansor.create_pack(file, task, of="it")
    assert [record.cost for record in pack.records] == [1e-3, 2e-3] and dict(pack.machine)["vector_bytes"] == str(task.target.vector_bytes)
    found = ansor.import_pack(pack, task, records=tmp_path / "new.jsonl")
    assert found.away == "" and found.written == 2 and found.tasks[0].cost == 1e-3
    assert recorded_outcomes(task, tmp_path / "new.jsonl").best == found.tasks[0].usable[0]
    assert ansor.import_pack(pack, task, records=tmp_path / "new.jsonl").written == 0


def test_a_loss_is_the_model_s_word_on_both_programs(file: str, task: SearchTask) -> None:
    found = ansor.import_pack(ansor.create_pack(file, task), task)
    (one,) = found.tasks
    assert one.programs == 2 == len(one.usable) and one.share is not None and 0.0 < one.share < 1.0  # the first rows are no good programs
    assert found.share == pytest.approx(one.share) and found.model and found.others == found.missing == ()


def test_the_total_counts_uses_and_times(task: SearchTask, file: str) -> None:
    found = ansor.import_pack(ansor.create_pack(file, task), task)
    first = found.tasks[0]
    parts = [(2.0, 1e-3, 0.5), (1.0, 2e-3, 1.0), (9.0, None, None)]
    tasks = tuple(type(first)(task, uses, 1, (), {}, cost, share) for uses, cost, share in parts)
    assert Imported(found.pack, task.target, tasks, (), (), "", "").share == pytest.approx(0.75)
    assert Imported(found.pack, task.target, tasks[2:], (), (), "", "").share is None


def test_another_machine_s_times_do_not_count(file: str, task: SearchTask, tmp_path: Path) -> None:
    pack = changed(ansor.create_pack(file, task), target=ELSEWHERE)
    found = ansor.import_pack(pack, task)
    assert "on another processor: GenuineIntel family 6 model 85" in found.away and len(found.tasks[0].usable) == 2
    with pytest.raises(RecordError, match="they do not count here: made on another processor.*--measure N"):
        ansor.import_pack(pack, task, records=tmp_path / "new.jsonl")
    assert not (tmp_path / "new.jsonl").exists()


def test_measured_again(file: str, task: SearchTask, tmp_path: Path) -> None:
    pack = changed(ansor.create_pack(file, task), target=ELSEWHERE)
    found = ansor.import_pack(pack, task, measure=5, records=tmp_path / "new.jsonl")
    (one,) = found.tasks
    assert len(one.here) == 2 == found.written and None not in one.here
    known = recorded_outcomes(task, tmp_path / "new.jsonl").known
    assert [outcome.pick for outcome, _ in known] == [outcome.pick for outcome in one.usable] and [record.cost for _, record in known] == list(one.here)


def test_an_instruction_that_is_not_here(task: SearchTask) -> None:
    space = task.spaces[0]
    steps = json.loads(space.name)
    records = [Record(task.workload_key, ELSEWHERE, frozen([*steps[:-1], ["TE", "C", "j", "k", "helium_vmladava_s8"], steps[-1]]), (0,), (1e-3,)),
               Record(task.workload_key, ELSEWHERE, frozen(steps), (10**6,) * len(space.sizes), (2e-3,)),
               Record(task.workload_key, ELSEWHERE, (("XX", "C"),), (), (3e-3,))]  # fmt: skip
    (one,) = expect(make_pack(records, [PackedTask(task.workload_key, "")], ()), [(task, 1.0)]).tasks
    assert one.usable == () and one.share is None and one.cost is None
    reasons = list(one.left_out)
    assert reasons[0] == f"it needs helium_vmladava_s8, which {task.target} does not have" and reasons[1] == "the sketch has no such row"
    assert "sketches of rules that are not here" in reasons[2]


def test_the_limits_that_a_program_breaks_are_named(task: SearchTask) -> None:
    space = task.spaces[0]
    rows = np.random.default_rng(0).integers(0, space.sizes, (4000, len(space.sizes)))
    row = tuple(rows[~space.legal(rows)][0].tolist())
    record = Record(task.workload_key, ELSEWHERE, frozen(json.loads(space.name)), row, (1e-3,))
    (one,) = expect(make_pack([record], [PackedTask(task.workload_key, "")], ()), [(task, 1.0)]).tasks
    (reason,) = one.left_out
    assert re.fullmatch(rf"it breaks the limit '(registers|code|whole instructions)' of {re.escape(str(task.target))}", reason)


def test_other_tasks_are_named(file: str, task: SearchTask) -> None:
    other = SearchTask(matmul, (16, 16, 32), ONE)
    pack = ansor.create_pack(file)
    assert ansor.import_pack(pack, [task, other]).missing == ("matmul(16, 16, 32)",)
    with pytest.raises(RecordError, match=r"matmul\(16, 16, 16\), which has no program of matmul\(16, 16, 32\); name its network or operator with --of"):
        ansor.import_pack(pack, other)
    several = replace(pack, tasks=tuple(PackedTask(f"{k}", f"task number {k}") for k in range(9)))
    with pytest.raises(RecordError, match="pack of task number 0, task number 1, task number 2, task number 3 and 5 more, which has"):
        ansor.import_pack(several, other)
    with pytest.raises(RecordError, match=r"no valid record of matmul\(16, 16, 32\) for .*; it holds matmul\(16, 16, 16\); `ansor show"):
        ansor.create_pack(file, other)


def test_wrong_arguments(file: str, task: SearchTask) -> None:
    with pytest.raises(ArgumentError, match="measure=2 and no records"):
        ansor.import_pack(ansor.create_pack(file), task, measure=2)
    with pytest.raises(ArgumentError, match="best 0 programs"):
        ansor.create_pack(file, best=0)
    with pytest.raises(ArgumentError, match="no tasks"):
        ansor.import_pack(ansor.create_pack(file), [])
    with pytest.raises(TargetError, match="give all of them one target"):
        ansor.create_pack(file, [task, SearchTask(matmul, (16, 16, 16), "cpu -threads=2")])
    assert len(load(file).records) == 3
