"""Nothing in a file starts a program: every reader, every field, and a canary that leaves a trace when it is started."""

from __future__ import annotations

import json
import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import ansor
from ansor import auto_scheduler, autotvm
from ansor.cli import main
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import Argument, CSource
from ansor.codegen.toolchain import Compiled, find_compiler, prepare
from ansor.codegen.tools import Tools
from ansor.compat import log_entries
from ansor.compat.auto_scheduler.measured import MeasureInput, MeasureResult
from ansor.compat.auto_scheduler.search_task import recover_measure_input
from ansor.compat.conversion import convert
from ansor.compat.log_kinds import LogKind
from ansor.dataset.examples import examples_of
from ansor.errors import AnsorError, AnsorWarning
from ansor.measure import record as trials
from ansor.measure.kernel import Kernel, build_kernels
from ansor.measure.record import Record, RecordFile, make_header
from ansor.measure.record_target import record_target
from ansor.measure.saved_kernel import ABOUT, sealed
from ansor.tasks.task import SearchTask
from ansor.te import workloads
from tests.autotvm import templates
from tests.compat.test_conversion import KEY, NAME, some_lines

pytestmark = pytest.mark.compiler

Json = object
Reader = Callable[[Path], object]
DECLARATION = "from ansor.te import workloads\n\n\ndef product(n=16, m=16, k=8):\n    return workloads.matmul(n, m, k)\n"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the canary leaves. Compilers are found, which starts them, and helpers are built; programs are not: there would be thousands."""
    prepare(find_compiler())

    def compiled(tools: Tools, text: str, made: Path) -> Compiled:
        assert tools.compiler == find_compiler()
        return Compiled("compile", "no program is built in this test", 0.0, tools.compiler.command)

    monkeypatch.setattr(Tools, "compiled", compiled)
    monkeypatch.chdir(tmp_path)
    Path("op.py").write_text(DECLARATION)
    Path("canary").write_text(f"#!/bin/sh\n: > {tmp_path}/trace\n")
    Path("canary").chmod(0o755)
    return tmp_path / "trace"


def forms(canary: str) -> list[str]:
    """Ways to say that a target's programs are built by the canary."""
    shell, host = f"sh -c {canary}", {"kind": "llvm", "cc": canary}
    return [
        f"llvm -cc={canary}", f"cpu -cc {canary}", f"llvm --cc={canary}", f"cpu -threads=1 '-cc={shell}'", f"llvm -cc={shlex.quote(shell)}",
        f'llvm -c"c"={canary}', f"llvm -mcpu=native\t-cc={canary}", f"cpu -threads=1 -cc={canary} (logged: llvm)", f"cpu (logged: llvm -cc={canary})",
        json.dumps(host), json.dumps({**host, "mcpu": "native"}), json.dumps({"kind": "llvm", "host": host}), f"llvm -host='llvm -cc={canary}'",
        f"llvm --host={json.dumps(json.dumps(host))}", canary, f"cc={canary}", f"-cc={canary}",
    ]  # fmt: skip


def changed_lines(row: str, canary: str) -> Iterator[str]:
    """The line with each of its texts replaced by a form, or with the form behind it: by all forms in both ways where a target stands."""
    fields = json.loads(row)
    for path in _texts(fields):
        for (number, form), behind in product(enumerate(forms(canary)), (False, True)):
            again = json.loads(row)
            place = again
            for key in path[:-1]:
                place = place[key]
            is_target = place[path[-1]].startswith(("llvm", "cpu"))
            if is_target or number % 2 == behind:
                place[path[-1]] = f"{place[path[-1]]} {form.removeprefix('llvm ').removeprefix('cpu ')}" if behind else form
                yield json.dumps(again, separators=(",", ":") if "row" in fields else None)


def _texts(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, str):
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _texts(item, (*path, key))


def _built(inp: MeasureInput) -> None:
    """As far as a log's program goes on its way to a compiler."""
    with suppress(AnsorError):
        auto_scheduler.LocalBuilder().build([inp])


def _compiler(inp: MeasureInput) -> None:
    """The compiler for a log's program, which is where one that is named would be started."""
    with suppress(AnsorError):
        task = recover_measure_input(inp).task
        assert isinstance(task, auto_scheduler.SearchTask)
        find_compiler(task.local_target.compiler)


def _state_readers() -> dict[str, Reader]:
    task = auto_scheduler.SearchTask(workload_key=KEY, target="llvm", hardware_params=auto_scheduler.HardwareParams(2, 64, 64))

    def within(path: Path) -> object:
        with auto_scheduler.ApplyHistoryBest(str(path)):
            return task.apply_best()

    def lines(path: Path) -> list[tuple[MeasureInput, MeasureResult]]:
        found = []
        for row in path.read_text().splitlines():
            with suppress(AnsorError):
                found.append(auto_scheduler.load_record_from_string(row))
        return found

    return {
        "load_records": lambda path: list(map(_compiler, (inp for inp, _ in auto_scheduler.load_records(path)))),
        "LocalBuilder": lambda path: list(map(_built, (inp for inp, _ in list(auto_scheduler.load_records(path))[-1::-40]))),
        "load_record_from_string": lambda path: list(map(_compiler, (inp for inp, _ in lines(path)))),
        "RecordReader": lambda path: list(map(_compiler, auto_scheduler.RecordReader(path).read_lines()[0])),
        "load_best_record": lambda path: _built(auto_scheduler.load_best_record(path)[0]),  # type: ignore[arg-type]
        "apply_best": lambda path: task.apply_best(path),
        "print_best": lambda path: task.print_best(path, "source"),
        "ApplyHistoryBest": within,
        "SketchPolicy": lambda path: auto_scheduler.SketchPolicy(task, init_search_callbacks=[auto_scheduler.PreloadMeasuredStates(str(path))]),
        "XGBModel": lambda path: auto_scheduler.XGBModel().update_from_file(str(path)),
        **_log_readers(),
    }


def _config_readers() -> dict[str, Reader]:
    def built(inp: autotvm.MeasureInput) -> None:
        with suppress(AnsorError):
            task = autotvm.task.create("tests/matmul", (16, 32, 8), inp.target)
            builder = autotvm.LocalBuilder()
            builder.set_task(replace(task, target=inp.target))
            builder.build([inp])
            builder.close()

    def decoded(row: str) -> None:
        with suppress(AnsorError):
            built(autotvm.decode(row)[0])

    def dispatched(path: Path) -> object:
        with autotvm.apply_history_best(str(path)), autotvm.on_target("llvm"):
            return templates.matmul(16, 32, 8)

    return {
        "load_from_file": lambda path: list(map(built, (inp for inp, _ in autotvm.record.load_from_file(path)))),
        "decode": lambda path: list(map(decoded, path.read_text().splitlines())),
        "apply_history_best": dispatched,
        "read": lambda path: autotvm.record.read(path, 0, 10**6, ir=True, code=True),
        "pick_best": lambda path: autotvm.record.pick_best(path, path.with_suffix(".best")),
        "split_workload": lambda path: autotvm.record.split_workload(path),
        **_log_readers(),
    }


def _log_readers() -> dict[str, Reader]:
    """What reads files of any format."""
    known = {KEY: tuple(workloads.matmul(16, 16, 8))}

    def converted(path: Path, **options: object) -> object:
        for to in LogKind:
            out = path.with_suffix(f".{to.name}")
            out.unlink(missing_ok=True)
            with suppress(AnsorError):
                convert(path, out, to, workloads=known, **options)  # type: ignore[arg-type]
        return None

    words = {
        "record": ["record", "--mode", "read", "-i", "{}", "--end", "1000000"], "record --code": ["record", "-i", "{}", "--ir", "--code"],
        "record pick": ["record", "--mode", "pick", "-i", "{}"], "record split": ["record", "--mode", "split", "-i", "{}"],
        "show": ["show", "{}", "op.py", "--threads", "1", "--source"], "explain": ["explain", "{}", "op.py", "--threads", "1", "--peak", "50"],
        "convert": ["convert", "{}", "out1", "op.py"], "convert --here": ["convert", "--here", "{}", "out2", "op.py"],
        "compile": ["compile", "op.py", "--records", "{}", "--threads", "1"],
    }  # fmt: skip
    return {
        "entries": lambda path: log_entries.entries(path), "converted": converted, "converted, here": lambda path: converted(path, here=True),
        **{f"ansor {name}": lambda path, given=given: main([word.format(path) for word in given]) for name, given in words.items()},  # type: ignore[misc]
    }  # fmt: skip


def _trial_readers() -> dict[str, Reader]:
    def best(path: Path) -> object:
        return ansor.auto_schedule(workloads.matmul, (16, 16, 8), "cpu -threads=1", trials=0, records=path)

    def tuned(path: Path) -> int:
        return main(["tune", "op.py", "--trials", "1", "--threads", "1", "--records", str(path)])

    task = SearchTask(workloads.matmul, (16, 16, 8), "cpu -threads=1")
    return {"load": lambda path: trials.load(path), "load_records": lambda path: ansor.load_records(path), "auto_schedule": best,
            "dataset": lambda path: examples_of(task, path, Counter()), "ansor tune": tuned, **_log_readers()}  # fmt: skip


def _watched(readers: dict[str, Reader], path: Path, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, read in readers.items():
        with suppress(AnsorError), warnings.catch_warnings():
            warnings.simplefilter("ignore", AnsorWarning)  # what a reader says of such a file is tested elsewhere
            read(path)
        assert not trace.exists(), name
    capsys.readouterr()


def test_the_canary_sings(trace: Path) -> None:
    """Who names a compiler himself gets it: so these tests would see one that was started."""
    task = auto_scheduler.SearchTask(workload_key=KEY, target=f"llvm -cc={trace.with_name('canary')}")
    with pytest.raises(AnsorError):
        auto_scheduler.LocalBuilder().build([MeasureInput(task, task.compute_dag.init_state)])
    assert trace.exists()


@pytest.mark.parametrize("alone", [False, True], ids=["all lines in one file", "each target in a file of its own"])
def test_no_field_of_an_auto_scheduler_log_starts_a_program(trace: Path, alone: bool, capsys: pytest.CaptureFixture[str]) -> None:
    fields = json.loads(next(row for row in some_lines(2, seed=3) if '"r": [[0' in row))
    fields["i"][0][3:] = ["llvm -keys=cpu", 1, ["A"]]
    honest = json.dumps(fields)
    rows = list(changed_lines(honest, str(trace.with_name("canary"))))
    if alone:
        rows = [row for row in rows if json.loads(row)["i"][0][1] != fields["i"][0][1]][:: 3]
    path = Path("log.json")
    for group in [[row] for row in rows] if alone else [rows]:
        path.write_text("\n".join([*group, honest]) + "\n")
        readers = _state_readers()
        _watched({name: readers[name] for name in ("LocalBuilder", "apply_best", "converted, here")} if alone else readers, path, trace, capsys)


@pytest.mark.parametrize("version", [0.1, 0.2])
def test_no_field_of_an_autotvm_log_starts_a_program(trace: Path, version: float, capsys: pytest.CaptureFixture[str]) -> None:
    task, config = templates.instance("tests/matmul", (16, 32, 8), tile_x=1)
    row = autotvm.encode(autotvm.MeasureInput("llvm", task, config), autotvm.MeasureResult((0.001,), 0, 1.0, 2.0))
    if version == 0.1:
        new = json.loads(row)
        old = {"i": new["config"]["index"], "t": "direct", "c": None, "e": new["config"]["entity"]}
        row = json.dumps({"i": [*new["input"], ["tests/matmul", 16], old], "r": new["result"], "v": 0.1})
    path = Path("log.log")
    path.write_text("\n".join([*changed_lines(row, str(trace.with_name("canary"))), row]) + "\n")
    _watched(_config_readers(), path, trace, capsys)


def test_no_field_of_a_record_file_starts_a_program(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = SearchTask(workloads.matmul, (16, 16, 8), "cpu -threads=1")
    space, target = task.spaces[0], record_target(task.target)
    row = (0,) * len(space.sizes)
    made = Record(task.workload_key, target, json.loads(space.name), row, (0.001,), algorithm=space.algorithm)
    with RecordFile("trials.jsonl", make_header(CToolchain(find_compiler()))) as file:
        file.append(made)
        file.append(made._replace(target="cpu -threads=1 (logged: llvm -keys=cpu)", costs=(0.002,)))
    header, *lines = Path("trials.jsonl").read_text().splitlines()
    canary = str(trace.with_name("canary"))
    rows = [changed for line in lines for changed in changed_lines(line, canary)]
    path = Path("changed.jsonl")
    path.write_text("\n".join([header, *lines, *rows]) + "\n")
    _watched(_trial_readers(), path, trace, capsys)
    for changed in list(changed_lines(header, canary))[::5]:  # a file has one header, which the first line is
        path.write_text("\n".join([changed, *lines]) + "\n")
        _watched({"load": trials.load, "show": lambda path: main(["show", str(path)])}, path, trace, capsys)


def test_no_field_of_a_saved_kernel_starts_a_program(tmp_path: Path) -> None:
    text = "void twice(void *const *args, unsigned char *w, void *p, void *q) { ((float *)args[1])[0] = 2 * ((float *)args[0])[0]; }"
    arguments = (Argument("a", (1,), "float32", "input"), Argument("b", (1,), "float32", "output"))
    (kernel,) = build_kernels([CSource(text, "twice", arguments)])
    folder = kernel.save(tmp_path / "saved")
    (tmp_path / "canary").write_text(f"#!/bin/sh\n: > {tmp_path}/trace\n")
    (tmp_path / "canary").chmod(0o755)
    whole = (folder / ABOUT).read_text()
    for row in changed_lines(whole, str(tmp_path / "canary")):
        about = sealed({**json.loads(row), "cc": str(tmp_path / "canary"), "compiler": str(tmp_path / "canary"), "target": f"cpu -cc={tmp_path}/canary"})
        (folder / ABOUT).write_text(json.dumps(about))
        with suppress(AnsorError, TypeError):  # a role of another name
            Kernel.load(folder)(np.ones(1, np.float32))
    assert not (tmp_path / "trace").exists()


def test_lines_that_name_a_program_are_left_out_and_the_rest_is_kept(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    honest = some_lines(3)
    bad = [json.loads(row) for row in honest]
    for fields, target in zip(bad, (f"llvm -cc={trace}", json.dumps({"kind": "llvm", "cc": str(trace)}), "llvm -host='llvm -cc=x'"), strict=True):
        fields["i"][0][1] = target
    Path("log.json").write_text("\n".join([*map(json.dumps, bad), *honest]) + "\n")
    loaded = auto_scheduler.record.load("log.json")
    assert len(loaded.records) == 3 and [one.line for one in loaded.skipped] == [1, 2, 3]
    assert {one.reason for one in loaded.skipped} == {"its target has -cc, which names a program to start"}
    assert main(["convert", "log.json", "out.jsonl", "op.py"]) == 0
    assert "3 lines (line 1 and others) left out: its target has -cc, which names a program to start" in "".join(capsys.readouterr())


def test_logs_of_tasks_that_name_a_compiler_are_written_without_it(tmp_path: Path) -> None:
    """So that they are read again."""
    task = auto_scheduler.SearchTask(NAME, (16, 16, 8), target="llvm -mcpu=haswell -cc='gcc -m64'", target_host="llvm -cc=gcc")
    inp = MeasureInput(task, task.compute_dag.init_state)
    auto_scheduler.save_records(tmp_path / "log.json", [inp], [MeasureResult([0.5], 0, "", 1.0, 2.0)])
    ((read, _),) = auto_scheduler.load_records(tmp_path / "log.json")
    assert (read.task.target, read.task.target_host) == ("llvm -keys=cpu -mcpu=haswell", "llvm") and "gcc" not in (tmp_path / "log.json").read_text()
    assert auto_scheduler.load_best_record(tmp_path / "log.json", task.workload_key, task.target)[1] is not None
    config = templates.instance("tests/matmul", (16, 32, 8))
    row = autotvm.encode(autotvm.MeasureInput("llvm -cc=gcc -model=x", *config), autotvm.MeasureResult((0.1,), 0, 1.0, 2.0))
    assert autotvm.decode(row)[0].target == "llvm -model=x"
