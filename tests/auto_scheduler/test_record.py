"""Logs: reading, skipping lines, and the best records."""

import io
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.auto_scheduler import RecordReader, distill_record_file, load_best_record, load_records, save_records
from ansor.compat.auto_scheduler.log_line import read_line
from ansor.compat.auto_scheduler.record import best_records, load
from ansor.errors import RecordError
from ansor.support.line_files import Skipped
from tests.auto_scheduler.lines import LINE, MATMUL, TASKS, line, measured


def _save(path: Path, *records: tuple[float, str, str, int]) -> None:
    pairs = [measured(seconds, key=key, target=target, error_no=error_no) for seconds, key, target, error_no in records]
    save_records(path, [inp for inp, _ in pairs], [result for _, result in pairs])


@given(st.lists(st.binary(max_size=40) | st.just(LINE.encode()), max_size=6))
def test_files_with_arbitrary_content(rows: list[bytes]) -> None:
    content = b"\n".join(rows)
    loaded = load(io.BytesIO(content))
    assert len(loaded.records) == sum(row == LINE.encode() for row in content.split(b"\n"))
    assert all(skipped.reason.isprintable() for skipped in loaded.skipped)


def test_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "x.json"
    rows = [line(task, version=version) for version, task in TASKS.items()]
    path.write_bytes(b"# a comment\n not a line\n\n\xff\xfe\n" + LINE[:50].encode() + b"\r\n" + "\n".join(rows).encode())
    loaded = load(path)
    assert [record.version for record in loaded.records] == list(TASKS)
    assert loaded.skipped[0] == Skipped(4, "it is not UTF-8") and loaded.skipped[1].line == 5 and loaded.skipped[1].reason.startswith("it is not JSON (")
    with caplog.at_level(logging.WARNING, "auto_scheduler"):
        pairs = list(load_records(path))
    assert pairs == [(record.input, record.result) for record in loaded.records]
    assert [record.getMessage().partition(" of ")[0] for record in caplog.records] == ["line 4", "line 5"]
    with pytest.raises(RecordError, match="cannot be read"):
        next(load_records(tmp_path / "nothing.json"))


def test_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    _save(path, *[(float(number), MATMUL, "llvm", 0) for number in range(1, 6)])
    reader = RecordReader(path)
    assert list(reader) == list(reader) and len(list(reader)) == 5
    seconds = [[result.costs[0] for result in reader.read_lines(*asked)[1]] for asked in ((), (2,), (2, 1), (None, 3), (9, 4))]
    assert seconds == [[1, 2, 3, 4, 5], [1, 2], [2, 3], [4, 5], [5]]


def test_saving_appends_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    inp, result = measured(1.0)
    path.write_text(LINE + "\n")
    save_records(path, [inp, inp], [result, result])
    before = path.read_bytes()
    assert before.startswith(LINE.encode()) and list(load_records(path))[1:] == [(inp, result)] * 2
    with pytest.raises(RecordError, match="2 inputs with 1 results"):
        save_records(path, [inp, inp], [result])
    with pytest.raises(RecordError, match="cannot hold"):
        save_records(path, [inp, inp], [result, measured(-1.0)[1]])
    with pytest.raises(RecordError, match="cannot be written"):
        save_records(tmp_path, [inp], [result])
    assert path.read_bytes() == before


def test_the_best_record(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    large, small, other = '["conv", [8, 64, 56, 56]]', '["conv", [1, 64, 28, 28]]', '["pool", [8, 64, 56, 56]]'
    _save(path, (3.0, large, "llvm -mcpu=a", 0), (2.0, large, "llvm -mcpu=b", 0), (2.0, large, "llvm", 0), (0.1, large, "llvm", 4), (1.0, large, "cuda", 0),
          (0.05, small, "llvm", 0), (0.01, other, "llvm", 0))  # fmt: skip

    def best(*asked: object, **more: object) -> tuple[float, str]:
        inp, result = load_best_record(path, *asked, **more)  # type: ignore[arg-type]
        assert inp is not None and result is not None
        return result.costs[0], inp.task.target

    assert best() == (0.01, "llvm") and best(target="cuda -arch=sm_80") == (1.0, "cuda") and best(large) == (1.0, "cuda")
    assert best(large, "llvm -mcpu=c") == (2.0, "llvm -mcpu=b")
    assert best(large, "llvm", include_compatible=True) == (0.05, "llvm")  # 32 times as much work: 1.6 s
    assert load_best_record(path, small, "cuda") == load_best_record(path, "nothing") == (None, None)
    assert load_best_record(path, '["conv", [3, 64, 56, 56]]') == (None, None)
    assert best('["conv", [16, 64, 56, 56]]', "cuda", include_compatible=True) == (1.0, "cuda")


@pytest.mark.parametrize("other", ["true", "1.0"])
def test_numbers_of_other_types_are_other_workloads(tmp_path: Path, other: str) -> None:
    path = tmp_path / "x.json"
    _save(path, (0.1, f'["f", {other}]', "llvm", 0), (2.0, '["f",1]', "llvm", 0))
    for compatible in (False, True):
        _, found = load_best_record(path, '["f", 1]', include_compatible=compatible)
        assert found is not None and found.costs == (2.0,)


def test_distilling(tmp_path: Path) -> None:
    path, out = tmp_path / "x.json", tmp_path / "best.json"
    _save(path, (3.0, "a", "llvm", 0), (2.0, "a", "llvm", 0), (2.0, "a", "llvm", 0), (0.1, "a", "llvm", 7), (4.0, "a", "cuda", 0), (9.0, "b", "llvm", 0),
          (0.1, "c", "llvm", 4), (5.0, "a", "llvm -mcpu=x", 0))  # fmt: skip
    rows = path.read_text().splitlines()
    assert distill_record_file(path, out) == 4 and out.read_text().splitlines() == [rows[place] for place in (1, 4, 5, 7)]
    assert distill_record_file(path, out, 2) == 5 and out.read_text().splitlines() == [rows[place] for place in (1, 2, 4, 5, 7)]
    path.write_text("\n".join([*rows, "torn", line(TASKS["v0.2"], version="v0.2")]))
    assert distill_record_file(path, path) == 5 and path.read_text().splitlines()[-1] == line(TASKS["v0.2"], version="v0.2")
    with pytest.raises(RecordError, match="the best 0 records"):
        best_records([read_line(LINE)], 0)
    with pytest.raises(RecordError, match="cannot be written"):
        distill_record_file(path, tmp_path)


def test_import_ansor_does_not_load_it() -> None:
    code = "import sys, ansor; dir(ansor); assert 'ansor.auto_scheduler' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
