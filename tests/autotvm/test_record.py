"""Logs: reading, skipping lines, and the best records."""

import io
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.autotvm import MeasureInput, MeasureResult, load_from_buffer, load_from_file
from ansor.compat.autotvm.log_line import encode
from ansor.compat.autotvm.record import best_records, load, pick, pick_best, read, split_workload
from ansor.errors import RecordError
from ansor.support.line_files import Skipped
from tests.autotvm import templates
from tests.autotvm.lines import LINE, changed, line


@given(st.lists(st.binary(max_size=40) | st.just(LINE.encode()), max_size=6))
def test_files_with_arbitrary_content(rows: list[bytes]) -> None:
    content = b"\n".join(rows)
    loaded = load(io.BytesIO(content))
    assert len(loaded.records) >= 0 and all(skipped.reason.isprintable() for skipped in loaded.skipped)
    assert len(loaded.records) == sum(row == LINE.encode() for row in content.split(b"\n"))


def test_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"# a comment\n" + LINE.encode() + b"\n\n\xff\xfe\n" + LINE[:50].encode() + b"\n" + line(0.5).encode())
    loaded = load(path)
    assert [record.result.mean_cost for record in loaded.records] == [0.00115, 0.5]
    assert loaded.skipped[0] == Skipped(4, "it is not UTF-8") and loaded.skipped[1].line == 5 and loaded.skipped[1].reason.startswith("it is not JSON (")
    with caplog.at_level(logging.WARNING, "autotvm"):
        assert [result.mean_cost for _, result in load_from_file(path)] == [0.00115, 0.5]
    assert [record.getMessage().partition(" of ")[0] for record in caplog.records] == ["line 4", "line 5"]
    assert [inp.target for inp, _ in load_from_buffer(io.StringIO(LINE + "\n" + line(1.0)))] == ["llvm -mcpu=core-avx2", "llvm"]
    with pytest.raises(RecordError, match="cannot be read"):
        next(load_from_file(tmp_path / "nothing.log"))


def test_the_best(tmp_path: Path) -> None:
    rows = [
        line(3.0), line(2.0), line(2.0), line(0.1, error_no=4),  # the second is the best of llvm's key, cpu
        line(9.0, task="conv"),
        line(2.5, target="llvm -model=i7"),  # the best of its model
        line(1.0, target="cuda -model=unknown"), line(1.5, target="opencl -device=mali"), line(0.5, target="c -keys=arm_cpu,x"),
        line(1.0, task="pool", target="rocm -model=gfx900"), line(2.0, task="pool", target="rocm"), line(0.1, task="softmax", error_no=4),
    ]  # fmt: skip
    path = tmp_path / "x.log"
    path.write_text("\n".join([*rows[:2], "torn", *rows[2:]]))
    best = [rows[place] for place in (1, 4, 5, 6, 7, 8, 9)]
    assert [encode(record.input, record.result, tvm_version=record.tvm_version) for record in best_records(load(path).records)] == best
    assert pick(path).read_text().splitlines() == best and pick(path) == tmp_path / "x.log.best.log"
    buffer = io.StringIO()
    assert pick_best(path, buffer) == 7 and buffer.getvalue().splitlines() == best
    assert pick_best(path, path) == 7 and path.read_text().splitlines() == best
    with pytest.raises(RecordError, match="cannot be written"):
        pick_best(path, tmp_path)


def test_a_log_for_each_workload(tmp_path: Path) -> None:
    first, again, failed, other, conv = line(3.0), line(2.0), line(1.0, error_no=4), line(1.0, target="cuda"), line(9.0, task="conv")
    path = tmp_path / "x.log"
    path.write_text("\n".join([first, conv, again, "torn", other, failed]))
    paths = [tmp_path / f"x.log.{number:03d}.wkl" for number in range(3)]
    assert split_workload(path, clean=False) == paths
    assert [one.read_text().splitlines() for one in paths] == [[first, again, failed], [conv], [other]]
    assert split_workload(path) == paths and [one.read_text().splitlines() for one in paths] == [[first], [conv], [other]]
    with pytest.raises(RecordError, match="the log .* cannot be read"):
        split_workload(tmp_path / "nothing.log")


def test_reading_programs(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    task, config = templates.instance("tests/matmul", (16, 32, 8), tile_y=2)
    path.write_text(encode(MeasureInput("llvm", task, config), MeasureResult((1.0,), 0, 0, 0)) + "\n" + line(2.0))
    described, loops, text, *others = read(path, ir=True, code=True)
    assert described.startswith("0: 'llvm' 'tests/matmul'") and "for C_i_0 in 4" in loops and "static void t_main_nest0" in text
    assert others[1].startswith("no program: asked for a program of task 'dense', which is not registered")


def test_reading_for_people(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    hostile = changed("input", 1, to="\x1b[2J\ud800é")
    path.write_text("\n".join([LINE, line(1, error_no=7), hostile, "torn"]))
    lines = read(path)
    assert lines[0].startswith("0: 'llvm -mcpu=core-avx2' 'dense'(('TENSOR', (1, 512), 'float32'), ") and lines[0].endswith(",None,193 -> 0.00115 s")
    assert lines[1].endswith(" -> RUN_TIMEOUT") and lines[3].startswith("1 line left out; line 4: it is not JSON")
    assert all(text.isascii() and text.isprintable() for text in lines) and read(path, 1, 2)[0] == lines[1] and len(read(path, 1, 2)) == 3


def test_old_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(LINE + '\n{"i": ["llvm", "conv", [], {}, null, {"i": 1, "t": "", "c": null, "e": []}], "r": [[0.1], 0, 1, 2], "v": 0.1}')
    loaded = load(path)
    assert len(loaded.records) == 1 and "version 0.1, from before TVM 0.7; read such lines with record.load(..., old=True)" in loaded.skipped[0].reason
    assert [record.result.mean_cost for record in load(path, old=True).records] == [0.00115, 0.1]
