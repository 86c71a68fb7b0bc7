import json
import multiprocessing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from ansor.errors import RecordError
from ansor.measure.failure import Failure
from ansor.measure.measurer import Durations, Measurement
from ansor.measure.new_record import Trial, make_record
from ansor.measure.record import (
    NOT_A_TRIAL,
    OTHER_TARGET,
    OTHER_WORKLOAD,
    TORN,
    Comparison,
    Header,
    Record,
    RecordFile,
    best,
    load,
    record_line,
)
from ansor.targets.unit import INSTRUCTIONS, SECONDS, cycles, ticks

HEADER = Header("zig cc 0.17.0", ("-O3",), 7, "0.1.0", (("processor", "test"), ("cores", "2")), 1.5)
GOOD = Record("matmul", "cpu", (("SP", 0, (4, 8)),), (1, 2, 3), (0.25, 0.5, 0.375), None, False, 0.1, 12.5, 7, 3)
FAILED = Record("matmul", "cpu", ((",\"row\":", {"row": 1}),), (0,), (), Failure("crash", 'SIGSEGV "\n,"row":'))
times = st.lists(st.floats(1e-9, 1), min_size=1).map(tuple)
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"]))
valid = st.builds(
    Record,
    workload=names, target=names, sketch=st.lists(st.text() | st.integers()).map(tuple),
    row=st.lists(st.integers(0, 9)).map(tuple), costs=times, failure=st.none(), cut_short=st.booleans(),
    elapsed=st.floats(0, 9), timestamp=st.floats(0, 9), seed=st.integers(), round=st.integers(0), algorithm=names,
    unit=st.just(SECONDS), device=st.just("local"), counters=st.dictionaries(names, st.floats(0, 1e18), max_size=3).map(lambda found: tuple(found.items())),
    measured_by=st.sampled_from(["", "local on host7 (a processor)"]),
)  # fmt: skip
units = st.sampled_from([SECONDS, INSTRUCTIONS, cycles("vta 16x16"), ticks(25e6)])
elsewhere = st.builds(lambda record, unit, device: record._replace(unit=unit, device=device), valid, units, st.sampled_from(["qemu-aarch64", "board é"]))
failed = st.builds(lambda record, text: record._replace(costs=(), failure=Failure("crash", text)), valid | elsewhere, st.text())
records = valid | elsewhere | failed


def write(path: Path, *lines: Record) -> None:
    with RecordFile(path, HEADER) as file:
        for line in lines:
            file.append(line)


@given(records)
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_records_read_back(tmp_path: Path, record: Record) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(record_line(record))
    assert load(path).records == (record,)


def test_header_and_order(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "r.jsonl"
    write(path, GOOD, FAILED)
    write(path, GOOD)
    write(path)  # a session without trials leaves nothing
    loaded = load(path)
    assert loaded.records == (GOOD, FAILED, GOOD) and loaded.headers == (HEADER, HEADER) and not loaded.skipped
    assert [sorted(json.loads(line))[0] for line in path.read_text().splitlines()] == ["header", "cut_short", "cut_short"] + ["header", "cut_short"]


def test_a_file_cut_anywhere_loads_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write(path, GOOD, FAILED)
    whole = path.read_bytes()
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        write(path, GOOD)
        loaded = load(path)
        complete = whole[:size].count(b"\n")
        tail_is_whole = size in {i for i, byte in enumerate(whole) if byte == ord("\n")}  # only its newline is missing
        old = max(0, complete + tail_is_whole - 1)
        assert loaded.records == (GOOD, FAILED)[:old] + (GOOD,)
        torn = size > 0 and not tail_is_whole and whole[size - 1] != ord("\n")
        assert loaded.skipped == ({TORN: 1} if torn else {})


def test_other_workloads_and_targets_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    write(path, GOOD, GOOD._replace(workload="conv"), GOOD._replace(target="arm"))
    loaded = load(path, workload="matmul", target="cpu")
    assert loaded.records == (GOOD,) and loaded.skipped == {OTHER_WORKLOAD: 1, OTHER_TARGET: 1}


def test_rubbish_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    lines = [b"", b"rubbish", b'{"a":1,"row":2}', b'{"workload":1,"row":[]}', b'{"header":5}', b"\xff\xfe", b'[1,"row":3]']
    path.write_bytes(record_line(GOOD) + b"\n".join(lines) + b"\n" + record_line(GOOD))
    loaded = load(path)
    assert loaded.records == (GOOD, GOOD) and loaded.skipped == {TORN: 1, NOT_A_TRIAL: 4, "damaged line: it has no target": 1}


WRITERS: dict[str, dict[str, Any]] = {
    "default": {}, "sorted": {"sort_keys": True}, "sorted and tight": {"sort_keys": True, "separators": (",", ":")}, "wide": {"separators": (" , ", " : ")},
}  # fmt: skip


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_that_another_tool_rewrote_load(tmp_path: Path, writer: str, start: bytes, end: str) -> None:
    path = tmp_path / "r.jsonl"
    kept = (GOOD, FAILED, GOOD._replace(algorithm="winograd_f4"))
    for with_header in (True, False):
        path.unlink(missing_ok=True)
        write(path, *kept)
        with RecordFile(path, HEADER) as file:
            file.append_comparison(Comparison("w", "t", "torch 2", "0", 0.5, 0.25, True, 1.0))
        whole = load(path)
        lines = path.read_text().splitlines()[0 if with_header else 1 :]
        path.write_bytes(start + "".join(json.dumps(json.loads(line), **WRITERS[writer]) + end for line in lines).encode())
        assert (load(path).records, load(path).comparisons, load(path).skipped) == (whole.records, whole.comparisons, {})
        assert [dict(one.machine) for one in load(path).headers] == [dict(one.machine) for one in whole.headers[0 if with_header else 1 :]]
        write(path, GOOD)
        assert load(path).records == (*kept, GOOD)


def test_later_formats_are_refused_however_they_are_spaced(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{ "header" : {"format" : 99}}\n')
    for use in (lambda: load(path), lambda: RecordFile(path, HEADER)):
        with pytest.raises(RecordError, match="format 99"):
            use()


@pytest.mark.parametrize("line", [b"null", b"5", b'"text"', b"[]", b"[1, 2]", b"{}", b'{"a": 1}', b"true", b"# a comment"])
def test_what_is_no_trial_is_not_called_torn(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(record_line(GOOD) + line + b"\n")
    assert load(path).records == (GOOD,) and load(path).skipped == {NOT_A_TRIAL: 1}


@pytest.mark.parametrize("spaced", [False, True])
def test_cut_lines_are_torn(tmp_path: Path, spaced: bool) -> None:
    path, line = tmp_path / "r.jsonl", record_line(GOOD).strip()
    line = json.dumps(json.loads(line)).encode() if spaced else line
    for size in range(1, len(line)):
        path.write_bytes(record_line(GOOD) + line[:size] + b"\n" + record_line(GOOD))
        assert load(path).records == (GOOD, GOOD) and load(path).skipped == {TORN: 1}


OTHERS = [b"# My notes\nbuy milk\n", b"\x7fELF\x00\xff", b"[1, 2]\n", b'{"a":1}', b'{"headers":1}\n', b'{\n "a": 1}', b"\n\nnotes", b"x" * 10**6]


@pytest.mark.parametrize("content", OTHERS)
def test_other_files_are_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.md"
    path.write_bytes(content)
    for use in (lambda: load(path), lambda: RecordFile(path, HEADER)):
        with pytest.raises(RecordError, match="notes.md is not a record file: its first line is .*; name another file") as caught:
            use()
        assert len(str(caught.value)) < 400
    assert path.read_bytes() == content


LOGS = [
    (b'{"i": [["[\\"matmul\\", 64]", "llvm", [4, 64]], [[], [["SP", 2, 0, 64, [4], 1]]]], "r": [[0.1], 0, 1.2, 1], "v": "v0.6"}', "TVM's auto-scheduler"),
    (b'{"input": ["llvm -keys=cpu", "matmul", [64, 64], {}], "config": {"index": 1}, "result": [[0.1], 0, 1, 2], "version": 0.2}', "AutoTVM"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "tool"), LOGS)
def test_logs_of_tvm_are_named(tmp_path: Path, line: bytes, tool: str) -> None:
    path = tmp_path / "matmul.json"
    path.write_bytes(line + b"\n")
    for use in (lambda: load(path), lambda: RecordFile(path, HEADER)):
        with pytest.raises(RecordError, match=f"matmul.json is not a record file but a log of {tool}; `ansor convert .*matmul.json OUT.jsonl` makes records"):
            use()


def test_later_formats_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"header":{"format":99}}\n')
    for use in (lambda: load(path), lambda: RecordFile(path, HEADER)):
        with pytest.raises(RecordError, match="format 99, but this version reads formats up to 1; update"):
            use()
    with pytest.raises(RecordError, match="cannot be read"):
        load(tmp_path / "missing.jsonl")
    with pytest.raises(RecordError, match="is a folder; name a plain file"):
        RecordFile(tmp_path, HEADER)


def test_best_is_the_smallest_median(tmp_path: Path) -> None:
    fast = GOOD._replace(costs=(0.1, 0.1, 9.0))
    assert best([GOOD, fast, FAILED, fast._replace(workload="conv", costs=(0.01,))], "matmul") == fast
    assert best([FAILED], "matmul") is None


def test_measurements_become_records() -> None:
    measurement = Measurement((0.5,), took=Durations(0.25, 0.5), timestamp=3.25)
    record = make_record(measurement, Trial("w", "t", [["SP", [1, 2]]], [1]), seed=3, round=4)
    assert record == Record("w", "t", (("SP", (1, 2)),), (1,), (0.5,), None, False, 0.75, 3.25, 3, 4)


def _append(path: Path, seed: int) -> None:
    write(path, *[GOOD._replace(seed=seed, row=tuple(range(500)))] * 200)


def test_writers_do_not_mix_lines(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_append, args=(path, seed)) for seed in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    loaded = load(path)
    assert len(loaded.records) == 400 and not loaded.skipped


NAMED = replace(HEADER, names=(("matmul", "matmul(8, 8)"),))


def test_names_of_workloads_are_in_the_header(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordFile(path, NAMED) as file:
        file.append(GOOD)
    assert load(path).headers == (NAMED,) and load(path).names == {"matmul": "matmul(8, 8)"}
    write(path, GOOD)
    assert load(path).names == {"matmul": "matmul(8, 8)"} and len(load(path).records) == 2, "sessions that name nothing take nothing away"


@pytest.mark.parametrize("names", ["[]", "3", "null", '"x"', "{}", '{"matmul":3}', '{"matmul":"\\u001b[31m"}', '{"matmul":["x"]}', '{"\\n":"x"}'])
def test_damaged_names_cost_nothing_else(names: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordFile(path, NAMED) as file:
        file.append(GOOD)
    path.write_text(path.read_text().replace('{"matmul":"matmul(8, 8)"}', names))
    found = load(path)
    assert (found.names, len(found.headers), len(found.records), found.skipped) == ({}, 1, 1, {})


def test_names_are_not_endless(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordFile(path, NAMED) as file:
        file.append(GOOD)
    path.write_text(path.read_text().replace("matmul(8, 8)", "m" * 10_000))
    assert len(load(path).names["matmul"]) == 200
