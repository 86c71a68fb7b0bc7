"""Reading, picking and splitting, through the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansor.auto_scheduler import record as states
from ansor.autotvm import ConfigEntity, MeasureInput, MeasureResult, Task, encode
from ansor.autotvm import record as configs
from ansor.cli import main
from ansor.compat.auto_scheduler.log_line import LogRecord, write_line
from ansor.compat.command_line import LOG_KINDS
from ansor.compat.log_kinds import LogKind
from ansor.measure.failure import Failure
from ansor.measure.record import Record, RecordFile, foreign_header, load, record_line
from tests.auto_scheduler.lines import measured
from tests.autotvm.lines import line as config
from tests.compat.test_conversion import KEY, some_lines


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [write_line(LogRecord(*measured(seconds, key=key))) for seconds, key in ((3.0, '["a"]'), (2.0, '["b"]'), (1.0, '["a"]'), (2.0, '["b"]'))]
    rows.append(write_line(LogRecord(*measured(0.5, key='["\x1b[2J"]', error_no=4))))
    Path("states.json").write_text("\n".join([*rows, rows[0][:30]]))
    Path("configs.log").write_text("\n".join([config(3.0), config(2.0), config(1.0, task="conv"), config(0.1, error_no=2)]))
    with RecordFile("trials.jsonl", foreign_header("a test")) as file:
        for workload, seconds in ("a", (3.0,)), ("b", (2.0, 4.0, 5.0)), ("a", (1.0,)), ("c", ()):
            file.append(Record(workload, "cpu", (), (7,), seconds, None if seconds else Failure("crash", "SIGSEGV")))
    with Path("trials.jsonl").open("a") as text:
        text.write(record_line(Record("a", "cpu", (), (7,), (1.0,))).decode().replace('"row":[7]', '"row":["x"]'))
    return tmp_path


def ran(words: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(words.split()) == 0
    return capsys.readouterr().out.splitlines()


def test_reading_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    said = ran("record --i states.json", capsys)
    assert [row[:2] for row in said] == ["0:", "1:", "2:", "3:", "4:", "1 "] and all(row.isprintable() for row in said)
    assert said[0].endswith("'[\"a\"]' ['CI', 1] -> 3 s") and said[4].endswith("-> RUNTIME_DEVICE") and "line 6" in said[5]
    said = ran("record --mode read --i configs.log --begin 1 --end 9", capsys)
    assert [row.rpartition("-> ")[2] for row in said[:-1]] == ["2 s", "1 s", "COMPILE_HOST"] and said[-1] == "3 of 4 records, selected by --begin and --end"
    assert ran("record --i configs.log --begin 9", capsys) == ["0 of 4 records, selected by --begin and --end"]
    assert ran("record --i configs.log --end 1 --ir", capsys)[1].startswith("no program: "), "the template is not registered"
    assert main(["record", "--i", "states.json", "--code"]) == 1 and "holds no configurations" in capsys.readouterr().err
    said = ran("record -i trials.jsonl", capsys)
    assert said[1] == "1: 'cpu' 'b' row (7,) -> 4 s" and said[3].endswith("-> crash: SIGSEGV") and "row is not a list of whole numbers" in said[4]


def test_picking(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("record --mode pick --i states.json", capsys)[0] == "states.json.best.json: 2 records"
    assert [record.result.costs for record in states.load("states.json.best.json").records] == [(2.0,), (1.0,)]
    assert ran("record --mode distill -i states.json -o other.json", capsys)[0] == "other.json: 2 records"
    assert Path("other.json").read_text() == Path("states.json.best.json").read_text()
    assert ran("record --mode pick --i configs.log", capsys) == ["configs.log.best.log: 2 records"]
    assert configs.load("configs.log.best.log").records == tuple(configs.load("configs.log").records[1:3])
    assert ran("record --mode pick --i trials.jsonl", capsys)[0] == "trials.jsonl.best.jsonl: 2 records"
    assert [record.cost for record in load("trials.jsonl.best.jsonl").records] == [4.0, 1.0]
    assert load("trials.jsonl.best.jsonl").headers[0].machine == (("source", "a test"),)


def test_skipped_lines_are_reported_when_picking_and_splitting(capsys: pytest.CaptureFixture[str]) -> None:
    with Path("configs.log").open("a") as text:
        text.write("\ntorn")
    for file in "states.json", "configs.log", "trials.jsonl":
        assert "1 line left out; line " in ran(f"record --mode pick --i {file}", capsys)[-1]
        assert "1 line left out; line " in ran(f"record --mode split --i {file}", capsys)[-1]


@pytest.mark.parametrize("words", ["--mode split --o x", "--mode read --o x", "--mode pick --ir", "--mode split --code"])
def test_options_of_another_mode_are_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "--i", "configs.log", *words.split()]) == 1
    assert f"asked for --mode {words.split()[1]} with {words.split()[2]}; --ir and --code are for read" in capsys.readouterr().err


def test_programs_of_templates_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.py").write_text(
        "import ansor\nfrom ansor import autotvm, te\n\n@autotvm.template('tests/in a file')\ndef mine(n):\n    a = te.placeholder((n,), name='a')\n"
        "    b = te.compute((n,), lambda i: a[i] + 1.0, name='b')\n    s = ansor.create_schedule(b.op)\n    return s, [a, b]\n"
    )
    task, config = Task("tests/in a file", (16,)), ConfigEntity(0, None, {})
    Path("mine.log").write_text(encode(MeasureInput("llvm", task, config), MeasureResult((1.0,), 0, 0.0, 0.0)))
    assert "registered" in ran("record --i mine.log --ir", capsys)[1]
    assert "for b_i in 16" in "\n".join(ran("record --i mine.log --ir --templates mine.py", capsys))
    assert main(["record", "--i", "mine.log", "--ir", "--templates", "nobody.py"]) == 1 and "nobody.py, which is not a file" in capsys.readouterr().err


def test_splitting(capsys: pytest.CaptureFixture[str]) -> None:
    said = ran("record --mode split --i states.json", capsys)
    assert said[:-1] == ["states.json.000.wkl: 2 records", "states.json.001.wkl: 1 record", "states.json.002.wkl: 1 record"], "each line once"
    assert [record.input.task.workload_key for record in states.load("states.json.001.wkl").records] == ['["b"]']
    assert ran("record --mode split --i configs.log", capsys) == ["configs.log.000.wkl: 1 record", "configs.log.001.wkl: 1 record"]
    ran("record --mode split --i trials.jsonl", capsys)
    assert [len(load(f"trials.jsonl.{k:03d}.wkl").records) for k in range(3)] == [2, 1, 1]


def test_converting_as_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    Path("log.json").write_text("\n".join(some_lines(3)))
    assert ran("convert log.json ours.jsonl", capsys) == ["ours.jsonl: 3 records (auto_scheduler to records)"]
    Path("declared.py").write_text(
        "import ansor\nfrom ansor.te import workloads\n\n@ansor.register_workload('converted matmul', override=True)\ndef product(n=16, m=16, k=8):\n"
        "    return workloads.matmul(n, m, k)\n"
    )
    assert ran("convert ours.jsonl back.json declared.py", capsys) == ["back.json: 3 records (records to auto_scheduler)"]
    assert Path("back.json").read_text().splitlines() == some_lines(3) and {json.loads(row)["i"][0][0] for row in some_lines(3)} == {KEY}
    assert main(["convert", "ours.jsonl", "no.json", "softmax"]) == 1, "no record has that workload"
    assert "3 lines left out: its workload is unknown" in capsys.readouterr().out
    Path("typed.py").write_text(Path("declared.py").read_text().replace("n=16, m=16, k=8", "n, m, k, dtype").replace("converted", "typed"))
    assert ran("convert ours.jsonl typed.json typed.py --args 16,16,8,float32", capsys) == ["typed.json: 3 records (records to auto_scheduler)"]
    Path("unknown.json").write_text(some_lines(1)[0].replace("converted matmul", "nobody"))
    assert main(["convert", "unknown.json", "x.jsonl"]) == 1
    assert "its workload 'nobody' is not registered here; name the function that declares it: FILE.py:function and --args" in capsys.readouterr().out
    assert main(["convert", "ours.jsonl", "log.json", "--to", "autotvm"]) == 1
    assert "which holds auto_scheduler; name another file" in capsys.readouterr().err


def test_sizes_that_a_file_does_not_have_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("log.json").write_text("\n".join(some_lines(3)))
    Path("declared.py").write_text(
        "import ansor\nfrom ansor.te import workloads\n\n@ansor.register_workload('converted matmul', override=True)\n"
        "def product(n, m, k, dtype='float32'):\n    return workloads.matmul(n, m, k)\n"
    )
    assert ran("convert log.json ours.jsonl declared.py --args 16,16,8", capsys) == ["ours.jsonl: 3 records (auto_scheduler to records)"]
    assert ran("convert ours.jsonl back.json declared.py --args 16,16,8", capsys) == ["back.json: 3 records (records to auto_scheduler)"]
    for words, told in (
        ("log.json x declared.py --args 7,7,7", "no record of product(7, 7, 7, float32); it has converted matmul(16, 16, 8): give the sizes of one"),
        ("ours.jsonl x declared.py --args 7,7,7", "no record of product(7, 7, 7, float32); it has other workloads: give the sizes of one"),
        ("log.json x --args banana", "asked to convert log.json with --args banana, but without the operator that takes them; name it: NAME, or FILE.py"),
        ("configs.log x --args 7,7", "but the lines of a log of AutoTVM have their own arguments; leave --args out"),
        ("log.json x declared.py --args 16", "but it takes n, m, k, dtype=float32: missing a required argument: 'm'"),
    ):
        assert main(["convert", *words.split()]) == 1
        heard = capsys.readouterr()
        assert told in heard.err and heard.err.count("\n") == 1 and not Path("x").exists()


def test_format_names_match_the_command() -> None:
    assert tuple(LogKind) == LOG_KINDS
