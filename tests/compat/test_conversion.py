"""Conversions between logs and record files: what stays the same, and what is reported about the rest."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import pytest

from ansor import auto_scheduler
from ansor.auto_scheduler import record as states
from ansor.autotvm import record as configs
from ansor.compat.auto_scheduler.compute_dag import ComputeDAG
from ansor.compat.auto_scheduler.log_line import LogRecord, write_line
from ansor.compat.auto_scheduler.measured import MeasureInput, MeasureResult, RecordedState, RecordedTask
from ansor.compat.auto_scheduler.measuring import failed
from ansor.compat.auto_scheduler.search_task import SearchTask
from ansor.compat.auto_scheduler.tune import state_of_row
from ansor.compat.common.hardware import HardwareParams
from ansor.compat.common.outcome import MeasureErrorNo
from ansor.compat.conversion import NO_CONFIG, NO_PROGRAM, convert
from ansor.compat.log_kinds import LogKind, kind_of_file, kind_of_line
from ansor.compat.state_records import HASH_ONLY
from ansor.errors import RecordError, ScheduleError
from ansor.measure.failure import Failure
from ansor.measure.record import Record, RecordFile, foreign_header, load, record_line
from ansor.measure.record_target import record_target
from ansor.tasks.recorded import recorded_outcomes
from ansor.tasks.workloads import register_workload
from ansor.te import workloads
from ansor.te.tensor import Tensor
from tests.auto_scheduler.lines import LINE as STATE_LINE
from tests.auto_scheduler.lines import TASKS, line
from tests.autotvm.lines import LINE as CONFIG_LINE

NAME = "converted matmul"
KEY = json.dumps([NAME, 16, 16, 8])
TARGET = "llvm -keys=cpu -mcpu=core-avx2"
OLD_CONFIG = {"i": 3, "t": "direct", "c": None, "e": [["n", "ot", 4]]}
OLD_LINE = json.dumps({"i": ["llvm", "dense", [1], {}, ["dense", 1], OLD_CONFIG], "r": [[0.1], 0, 1.0, 2.0], "v": 0.1})


@register_workload(NAME, override=True)
def product(n: int, m: int, k: int) -> list[Tensor]:
    return workloads.matmul(n, m, k)


def some_lines(count: int = 12, seed: int = 0) -> list[str]:
    """Programs of our search that TVM's steps can express, one of them a failure."""
    task, rng = SearchTask(workload_key=KEY, target=TARGET, hardware_params=HardwareParams(2, 64, 64)), random.Random(seed)
    found: list[str] = []
    while len(found) < count:
        space = rng.choice(task.local.spaces)
        row = [rng.randrange(size) for size in space.sizes.tolist()]
        try:
            state = RecordedState(state_of_row(task, space, row).transform_steps)
        except ScheduleError:
            continue
        result = MeasureResult([rng.random(), 0.25], 0, "", 0.5, 1607112214.0) if found else failed(MeasureErrorNo.RUNTIME_DEVICE, "", 0.5, 1.0)
        found.append(write_line(LogRecord(MeasureInput(task.recorded, state), result)))
    return found


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.json"
    path.write_text("\n".join(some_lines()) + "\n")
    return path


def known() -> dict[str, tuple[Tensor, ...]]:
    return {KEY: tuple(product(16, 16, 8))}


def test_logs_round_trip_exactly(log: Path, tmp_path: Path) -> None:
    there = convert(log, tmp_path / "ours.jsonl")
    assert (there.source, there.to, there.written, there.left_out) == (LogKind.AUTO_SCHEDULER, LogKind.RECORDS, 12, ())
    loaded = load(tmp_path / "ours.jsonl")
    assert len(loaded.records) == 12 and not loaded.skipped and loaded.headers[0].machine == (("source", "the log log.json"),)
    assert {record.target for record in loaded.records} == {f"cpu -mcpu=haswell -threads=2 (logged: {TARGET})"}
    assert loaded.records[0].failure == Failure("crash", "RUNTIME_DEVICE in a log")
    back = convert(tmp_path / "ours.jsonl", tmp_path / "back.json", workloads=known())
    assert back.written == 12 and (tmp_path / "back.json").read_text() == log.read_text()


@pytest.mark.compiler
def test_tuning_continues_from_times_of_this_machine(log: Path, tmp_path: Path) -> None:
    convert(log, tmp_path / "far.jsonl")
    convert(log, tmp_path / "here.jsonl", here=True)
    task = SearchTask(workload_key=KEY, target=TARGET, hardware_params=HardwareParams(2, 64, 64)).local
    assert load(tmp_path / "here.jsonl").records[0].target == record_target(task.target)
    assert len(recorded_outcomes(task, tmp_path / "here.jsonl").known) == 12
    assert not recorded_outcomes(task, tmp_path / "far.jsonl").known


def test_programs_that_steps_cannot_express_are_left_out(tmp_path: Path) -> None:
    task = auto_scheduler.SearchTask(workload_key=KEY, target="llvm -threads=1").local
    path = tmp_path / "ours.jsonl"
    with RecordFile(path, foreign_header("a test")) as file:
        for space in task.spaces:
            sketch = tuple(tuple(step) for step in json.loads(space.name))
            file.append(Record(task.workload_key, "cpu -threads=1 (gcc)", sketch, (0,) * len(space.sizes), (1.0,), algorithm=space.algorithm))
        file.append(Record(task.workload_key, "cpu -threads=1 (gcc)", (("SP",),), (), (1.0,)))
        file.append(Record("another", "cpu -threads=1 (gcc)", (("SP",),), (), (1.0,)))
        file.append(Record(task.workload_key, "gpu (gcc)", (("SP",),), (), (1.0,)))
    found = convert(path, tmp_path / "log.json", workloads=known())
    reasons = [one.reason for one in found.left_out]
    assert found.written + sum(one.count for one in found.left_out) == len(task.spaces) + 3 and found.written == len(states.load(tmp_path / "log.json").records)
    packing = "TVM's steps cannot express packing; keep such a program in a record file"
    for words in (packing, "names a sketch that does not exist", "its workload is unknown", "the kinds are arm, "):
        assert any(words in reason for reason in reasons), words
    (first, *_) = states.load(tmp_path / "log.json").records
    assert first.input.task == RecordedTask(KEY, "llvm -keys=cpu", HardwareParams(1, 64, 64), "", first.input.task.layout_rewrite_option, ())
    assert ComputeDAG(known()[KEY]).replay(first.input.state).notes == ()


def test_programs_outside_our_search_are_reported(tmp_path: Path) -> None:
    bind = [["AN", 2, 0, 6]]
    other = [["SP", 2, 0, 16, [3], 1]]
    rows = [
        json.dumps({"i": [[key, target, [2, 64, 64, 0, 0, 0, 0, 0]], [[], steps]], "r": [[1.0], 0, 1.0, 1], "v": "v0.3"})
        for key, target, steps in (
            (KEY, "llvm", bind), (KEY, "llvm", other), (KEY, "cuda", []), ('["nobody knows", 3]', "llvm", []), (json.dumps([NAME, 10**12, 16, 8]), "llvm", []),
            (json.dumps([NAME, "x", None]), "llvm", []), (KEY, "llvm", [["SP", 7, 0, 16, [4], 1]]),
        )
    ]  # fmt: skip
    (tmp_path / "log.json").write_text("\n".join(rows))
    found = convert(tmp_path / "log.json", tmp_path / "out.jsonl")
    assert found.written == 0 and not (tmp_path / "out.jsonl").exists() and sum(one.count for one in found.left_out) == len(rows)
    said = "\n".join(map(str, found.left_out))
    absent = "our search does not have its program (no sketch has its structure)"
    for words in (absent, "is not registered", "has 1000000000000 elements", "check its arguments", "only CPUs are supported"):
        assert words in said, words


@pytest.mark.parametrize(("tiles", "unroll", "reason"), [
    ([2, 1, 4], 8, "(C.unroll is 8, and it tries 0, 16, 64 and 512); SearchTask.apply_best of ansor.compat.tvm can still build it"),
    ([7, 1, 1], 16, "(it does not try C.i = (7, 1, 1)); SearchTask.apply_best"),
])  # fmt: skip
def test_a_value_that_our_search_does_not_try_is_named(tiles: list[int], unroll: int, reason: str, tmp_path: Path) -> None:
    tiled = [["SP", 2, 0, 16, tiles, 1], ["SP", 2, 4, 16, [1, 1, 8], 1], ["SP", 2, 8, 8, [4], 1], ["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]]]
    steps = [*tiled, ["FU", 2, [0, 1, 2, 3]], ["AN", 2, 0, 3], ["PR", 2, 0, f"auto_unroll_max_step${unroll}"], ["AN", 2, 6, 2]]
    row = {"i": [[KEY, "llvm", [2, 64, 64, 0, 0, 0, 0, 0]], [[], steps]], "r": [[1.0], 0, 1.0, 1], "v": "v0.3"}
    (tmp_path / "log.json").write_text(json.dumps(row) + "\n")
    (left,) = convert(tmp_path / "log.json", tmp_path / "out.jsonl").left_out
    assert reason in left.reason


def test_workloads_that_only_a_hash_names_are_counted_together(tmp_path: Path) -> None:
    hashes = [json.dumps([f"{number:032x}", 1, number]) for number in range(1, 4)]
    rows = [{"i": [[key, "llvm", [2, 64, 64, 0, 0, 0, 0, 0]], [[], []]], "r": [[1.0], 0, 1.0, 1], "v": "v0.3"} for key in hashes]
    (tmp_path / "log.json").write_text("\n".join(map(json.dumps, rows)))
    assert [str(one) for one in convert(tmp_path / "log.json", tmp_path / "out.jsonl").left_out] == [f"3 lines left out: {HASH_ONLY}"]


def test_old_versions_become_the_latest(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("\n".join(["# a comment", *(line(task, version) for version, task in TASKS.items()), STATE_LINE[:50]]))
    found = convert(tmp_path / "old.json", tmp_path / "new.json", LogKind.AUTO_SCHEDULER)
    assert found.written == 6 and [str(one).partition(":")[0] for one in found.left_out] == ["1 line (line 8) left out"]
    records = states.load(tmp_path / "new.json").records
    assert {record.version for record in records} == {"v0.6"} and records[3].input.task.recorded.layout_rewrite_option == 0
    assert [record.input.task.recorded.workload_key for record in records] == [json.loads(json.dumps(task))[0] for task in TASKS.values()]


def test_old_lines_of_autotvm_become_new_ones(tmp_path: Path) -> None:
    (tmp_path / "old.log").write_text(f"{OLD_LINE}\n{CONFIG_LINE}\nx\n")
    found = convert(tmp_path / "old.log", tmp_path / "new.log")
    assert (found.source, found.to, found.written, len(found.left_out)) == (LogKind.AUTOTVM, LogKind.AUTOTVM, 2, 1)
    old, new = configs.load(tmp_path / "new.log").records
    assert old.others == {"workload": ["dense", 1], "template_key": "direct"} and old.input.config["n"].val == 4
    assert json.loads((tmp_path / "new.log").read_text().splitlines()[1]) == json.loads(CONFIG_LINE) and new.tvm_version == "0.9.0"


def test_configurations_cannot_become_programs(log: Path, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(f"{CONFIG_LINE}\n{CONFIG_LINE}\n")
    for to in (LogKind.RECORDS, LogKind.AUTO_SCHEDULER):
        found = convert(tmp_path / "a.log", tmp_path / "out", to)
        assert found.written == 0 and [str(one) for one in found.left_out] == [f"2 lines left out: {NO_PROGRAM}"]
    found = convert(log, tmp_path / "out", LogKind.AUTOTVM)
    assert [str(one) for one in found.left_out] == [f"12 lines left out: {NO_CONFIG}"] and not (tmp_path / "out").exists()


def test_records_are_appended_to_files_of_the_same_format(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    convert(log, out)
    out.write_bytes(out.read_bytes() + b'{"workload":"torn')
    convert(log, out)
    assert len(load(out).records) == 24 and len(load(out).headers) == 2
    torn = tmp_path / "torn.json"
    torn.write_text(log.read_text() + STATE_LINE[:40])
    assert convert(log, torn).to == LogKind.AUTO_SCHEDULER and len(states.load(torn).records) == 24
    (tmp_path / "a.log").write_text(f"{CONFIG_LINE}\n")
    for source, other, sentence in (
        (log, tmp_path / "a.log", "asked to write records to .*, which holds autotvm"), (log, log, "into itself"),
        (out, tmp_path / "no", "join files with cat"), (tmp_path / "nowhere", out, "cannot be read"), (log, tmp_path / "no" / "folder", "cannot be written"),
    ):
        with pytest.raises(RecordError, match=sentence):
            convert(source, other, LogKind.RECORDS)
    (tmp_path / "text").write_text("no log\n")
    with pytest.raises(RecordError, match="has no lines of a record file"):
        convert(tmp_path / "text", tmp_path / "out")
    with pytest.raises(RecordError, match="has no lines of a record file"):
        convert(log, tmp_path / "text")
    assert (tmp_path / "text").read_text() == "no log\n", "and is left alone"
    assert not list(tmp_path.glob(".*")), "no temporary files are left"


def test_formats_are_recognised_by_lines(tmp_path: Path) -> None:
    trial = record_line(Record("w", "t", (), (), (1.0,))).decode()
    assert [kind_of_line(row) for row in (trial, STATE_LINE, CONFIG_LINE, OLD_LINE)] == ["records", "auto_scheduler", "autotvm", "autotvm"]
    for row in ("", "# comment", "[]", "{}", "null", "{" * 5000, '{"v": []}', '{"v": true}', STATE_LINE[:-1], '{"version": 1e999}'):
        assert kind_of_line(row) is None
    (tmp_path / "late").write_bytes(b"# v0.6\n\xff\xfe\n\n{}\n" + CONFIG_LINE.encode())
    assert kind_of_file(tmp_path / "late") == LogKind.AUTOTVM


@pytest.mark.parametrize("seed", range(6))
def test_hostile_lines_are_skipped_with_a_reason(seed: int, tmp_path: Path) -> None:
    rng, good = random.Random(seed), some_lines(2, seed)
    convert_input = tmp_path / "good.json"
    convert_input.write_text("\n".join(good))
    convert(convert_input, tmp_path / "good.jsonl")
    trial = (tmp_path / "good.jsonl").read_text().splitlines()[1:]
    for kind, rows, out in (("states", good, LogKind.RECORDS), ("trials", trial, LogKind.AUTO_SCHEDULER)):
        path = tmp_path / f"{kind}.log"
        spoilt = [spoil(rng, rng.choice(rows)) for _ in range(60)]
        path.write_text("\n".join([rows[0], *spoilt]))
        found = convert(path, tmp_path / f"{kind}.out", out, workloads=known())
        lines = [row for row in spoilt if row.strip() and not row.startswith(("#", " "))]
        assert found.written >= 1 and found.written + sum(one.count for one in found.left_out) == len(lines) + 1
        assert all(str(one).isprintable() and len(str(one)) < 700 for one in found.left_out)


def spoil(rng: random.Random, row: str) -> str:
    """A line that was truncated, or with a changed character, or with a value of another type."""
    how = rng.randrange(3)
    if how == 0:
        return row[: rng.randrange(1, len(row))]
    if how == 1:
        place = rng.randrange(len(row))
        return row[:place] + rng.choice(string.digits + '"[]{},:\\x-') + row[place + 1 :]
    fields = json.loads(row)
    where: dict[str | int, object] = fields
    while True:
        key = rng.choice(list(where) if isinstance(where, dict) else list(range(len(where))))
        inner = where[key]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.15:
            break
        where = inner  # type: ignore[assignment]  # a list is looked up by numbers
    where[key] = rng.choice([None, True, -1, 10**40, 1e300, "\x1b[2J\u202e", [], {}, [[["x"] * 3]], "__import__('os')", 0.5, 2**31])
    return json.dumps(fields, separators=(",", ":"))
