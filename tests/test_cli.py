"""The command line as a person types it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ansor.api import extract_tasks
from ansor.cli import main
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.commands.common import made
from ansor.commands.subject import NetworkSubject, resolve
from ansor.errors import AnsorWarning
from ansor.measure.failure import Failure
from ansor.measure.record import Record, RecordFile, load, make_header
from ansor.measure.record_target import record_target
from ansor.run.ledger import Ledger
from ansor.run.tuning import TuningRun
from ansor.tasks.task import SearchTask
from ansor.zoo.operators import matmul

DECLARATION = """
from ansor import te

def scaled(n=8, m=16):
    a = te.placeholder((n, m), name="a")
    r = te.reduce_axis((0, m), name="r")
    return [a, te.compute((n,), lambda i: te.sum(a[i, r], axis=r), name="b")]
"""
NETWORK = """
import torch

def model():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())

def example_inputs():
    return torch.ones(1, 3, 6, 6)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scaled.py").write_text(DECLARATION)
    (tmp_path / "net.py").write_text(NETWORK)
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)")
    (tmp_path / "several.py").write_text(DECLARATION + "\n\ndef other(n=8):\n    return scaled(n, 4)\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.compiler
def test_an_operator_is_exported_as_c(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["compile", "scaled.py", "--args", "512,1024", "--export", "out", "--threads", "2"]) == 0  # large enough for threads to pay
    assert "out/README.md says how to build and call it" in capsys.readouterr().out.replace("\n", " ")
    assert (folder / "out" / "scaled_512_1024.h").is_file() and (folder / "out" / "thread_pool.c").is_file()
    command = ["compile", "dense", "--args", "8,16,4", "--export", "dense"]
    assert main(command) == 1
    assert "whose C holds its constants, without their values; give --constants FILE.npz, a file of numpy.savez with " in capsys.readouterr().err
    np.save("array.npy", np.ones((4, 16), np.float32))
    for file in ("scaled.py", "array.npy"):
        assert main([*command, "--constants", file]) == 1
        assert f"asked for the constants in {file}, which is not a file of named arrays; give one that numpy.savez" in capsys.readouterr().err
    assert main([*command, "--constants", "none.npz"]) == 1
    assert "asked for the constants in none.npz, which cannot be read (No such file or directory); name another file" in capsys.readouterr().err
    np.savez("c.npz", weight=np.ones((4, 16), np.float32), bias=np.ones(4, np.float32))
    assert main([*command, "--constants", "c.npz", "--target", "cpu -mcpu=x86-64 -threads=1"]) == 0
    assert "set(DENSE_8_16_4_MARCH x86-64 " in (folder / "dense" / "CMakeLists.txt").read_text()


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    for command in ("tune", "compile", "show", "explain", "report", "doctor"):
        with pytest.raises(SystemExit) as left:
            main([command, "--help"])
        assert left.value.code == 0
    out = capsys.readouterr().out
    assert "ansor tune resnet18" in out and "ansor show resnet18.jsonl" in out


@pytest.mark.parametrize(
    "words",
    [
        "bogus", "tune", "tune matmul --bogus", "tune matmul --trials 0", "tune matmul --minutes 0", "tune matmul --minutes nan", "tune matmul --minutes ten",
        "tune matmul --seed -1", "tune matmul --min-gain -1", "tune matmul --min-gain 100", "tune matmul --args 8,,8", "explain", "explain x.jsonl --peak 0",
    ],  # fmt: skip
)
def test_words_that_are_not_options_end_with_2(words: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(words.split())
    assert left.value.code == 2


def test_who_would_measure_nothing_hears_of_the_other_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["tune", "matmul", "--trials", "0"])
    assert "`ansor compile` generates code without measuring" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tune", "matmul", "--args", "0,4,4"], "placeholder A with extent 0"),
        (["tune", "matmul", "--target", "cpu -bogus=3"], "not one of its options; the options are -mcpu"),
        (["tune", "matmul", "--target", "gpu"], "gpu programs cannot be generated yet; the kinds are arm, armv7, cpu"),
        (["tune", "matmul", "--target", "cuda -arch=sm_80"], "cuda programs cannot be generated yet; the kinds are arm, armv7, cpu"),
        (["tune", "matmul", "--threads", "100000"], "times would be meaningless; give -threads="),
        (["tune", "matmul", "--output", "scaled.py/kernels"], "asked for --output scaled.py/kernels, which is not writable"),
        (["compile", "scaled.py", "--output", "scaled.py"], "asked for --output scaled.py, which is not writable"),
        (["tune", "leaves.py"], "asked to read leaves.py, which ends the program (exit 3)"),
        (["tune", "scaled.py", "--cc", "no-such-compiler"], "there is no program 'no-such-compiler'"),
        (["compile", "scaled.py", "--records", "none.jsonl"], "which does not exist; tune first"),
        (["compile", "scaled.py", "--export", "out", "--isas", "x86-64-v3"], "which is for networks; name one processor"),
        (["compile", "scaled.py", "--export", "out", "--target", "arm"], "whose programs do not run here; use --output"),
        (["compile", "scaled.py", "--constants", "c.npz"], "asked for --constants without --export"),
        (["compile", "net.py", "--export", "out", "--constants", "c.npz"], "with --constants, which is for operators"),
        (["compile", "net.py", "--export", "out", "--target", "cpu", "--isas", "native"], "for both --target cpu and --isas native; give one of them"),
        (["compile", "net.py", "--isas", "x86-64-v3"], "asked for --isas without --export"),
        (["compile", "no.py", "--export", "out", "--isas", "x86-64-v9"], "did you mean x86-64-v4?"),
        (["tune", "no.py", "--devices", "locl"], "did you mean local?"),
        (["show", "none.jsonl"], "cannot be read"),
        (["show", "scaled.py"], "is not a record file"),
        (["explain", "none.jsonl"], "which is not a file; name a record file"),
        (["explain", "scaled.py"], "is not a record file"),
        (["explain", "empty.jsonl"], "which holds no trials"),
        (["explain", "empty.jsonl", "matmull"], "did you mean matmul?"),
        (["explain", "empty.jsonl", "scaled.py", "--threads", "1"], "has no valid record of scaled(8, 16) for target cpu -mcpu=native -threads=1"),
        (["explain", "empty.jsonl", "scaled.py", "--args", "1,2,3"], "too many positional arguments"),
    ],
)
def test_mistakes_end_with_1_and_one_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("ansor: ") and sentence in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "compiler", "cache"),
    [
        (["tune", "matmul", "--cc", "nocc"], "", ""), (["compile", "matmul", "--cc", "nocc"], "", ""), (["tune", "matmul"], "nocc", ""),
        (["compile", "matmul", "--args", "16,16,16"], "nocc", ""), (["tune", "matmul"], "", "/proc/none"), (["compile", "matmul"], "", "/proc/none"),
        (["tune", "matmul", "--records", "scaled.py"], "", ""), (["compile", "matmul", "--records", "scaled.py"], "", ""),
        (["tune", "matmul", "--devices", "fleet://nowhere"], "", ""),
    ],
)  # fmt: skip
def test_what_cannot_work_is_said_once_and_before_anything_else(
    arguments: list[str], compiler: str, cache: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", compiler)
    if cache:
        monkeypatch.setenv("ANSOR_CACHE", cache)
    assert main(arguments) == 1
    said = capfd.readouterr()
    assert said.out == "" and said.err.startswith("ansor: ") and said.err.count("\n") == 1 and "warning" not in said.err
    assert not list(Path().glob("matmul*.jsonl"))


def test_sizes_without_commas(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["tune", "matmul"], ["compile", "matmul"], ["show", "empty.jsonl", "matmul"]):
        with pytest.raises(SystemExit) as left:
            main([*command, "--args", "512", "256", "128"])
        assert left.value.code == 2 and "separate the sizes of an operator with commas: --args 512,256,128" in capsys.readouterr().err


@pytest.mark.parametrize("processor", ["neoverse-n1", "neoverse_v1", "cortex-a72", "apple-m1", "znver4", "x86-64-v3"])
def test_processors_of_another_architecture_are_told_before_work_starts(
    processor: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arm = not processor.startswith(("znver", "x86"))
    monkeypatch.setattr("platform.machine", lambda: "x86_64" if arm else "aarch64")
    for command in ("tune", "compile"):
        assert main([command, "matmul", "--target", f"cpu -mcpu={processor} -threads=1"]) == 1
        error = capsys.readouterr().err
        assert ("an ARM processor, but this machine is x86-64" if arm else "an x86-64 processor, but this machine is ARM") in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (MemoryError("Unable to allocate 2 GiB"), "memory, which is not the program's fault: MemoryError: Unable to allocate 2 GiB; free memory"),
        (OSError(27, "File too large", "some.jsonl"), "space under the file size limit.*'some.jsonl'; raise `ulimit -f`"),
        (OSError(28, "No space left on device"), "disk space"),
        (OSError(24, "Too many open files", "x"), "file descriptors.*'x'"),
    ],
)
def test_what_the_machine_lacks_is_said_as_that(error: Exception, what: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("ansor.commands.compile.recorded_state", fail)
    assert main(["compile", "scaled.py", "--threads", "1"]) == 1
    said = capsys.readouterr().err
    assert re.match(f"ansor: the machine has run out of {what}", said) and said.count("\n") == 1


@pytest.mark.parametrize("error", [KeyError("weight"), RecursionError("too deep"), ZeroDivisionError("two\nlines"), AssertionError()])
def test_no_error_shows_a_traceback(error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("ansor.commands.compile.recorded_state", fail)
    assert main(["compile", "scaled.py", "--threads", "1"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"ansor: unexpected {type(error).__name__}") and said.endswith("; set ANSOR_TRACEBACK=1 to see where it comes from\n")
    assert said.count("\n") == 1
    monkeypatch.setenv("ANSOR_TRACEBACK", "1")
    with pytest.raises(type(error)):
        main(["compile", "scaled.py", "--threads", "1"])


@pytest.mark.compiler
def test_warnings_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["compile", "matmul", "--args", "8,8,8", "--threads", "1000"]) == 0
    error = capsys.readouterr().err
    assert error.startswith("ansor: warning: asked for target cpu -mcpu=native -threads=1000 with 1000 threads") and error.count("\n") == 1


@pytest.mark.compiler
def test_files_tell_their_target_and_the_names_of_workloads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "several.py:other", "--trials", "2", "--threads", "1"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("other(8) for cpu -mcpu=native -threads=1; trials are kept in several.jsonl\n"), "named after the file, sizes included"
    assert "\x1b" not in said and "\r" not in said, "nothing for terminals goes into a pipe"
    assert main(["tune", "matmul", "--args", "8,8", "--trials", "2", "--threads", "1"]) == 0
    capsys.readouterr()
    for words in ("show several.jsonl several.py:other", "show matmul.jsonl matmul --args 8,8", "explain matmul.jsonl"):
        assert main(words.split()) == 0
        said = capsys.readouterr().out
        assert said.startswith("for cpu -mcpu=native -threads=1, the target of all trials in "), words
    assert main(["compile", "matmul", "--args", "8,8"]) == 0
    assert "1 from records" in capsys.readouterr().out
    assert main(["show", "several.jsonl"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("other(8)")]
    assert line.split()[1] == load("several.jsonl").records[0].workload
    for command in ("show", "explain"):
        assert main([command, "matmul.jsonl", "matmul", "--args", "8,8", "--threads", "2"]) == 1, "what is asked for counts"
        assert "it holds trials for --target 'cpu -mcpu=native -threads=1'; `ansor show matmul.jsonl`" in capsys.readouterr().err


@pytest.mark.compiler
def test_a_file_with_trials_for_several_targets_asks_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    for threads in ("1", "2"):
        assert main(["tune", "matmul", "--args", "8,8", "--trials", "1", "--threads", threads, "--records", "both.jsonl"]) == 0
    capsys.readouterr()
    assert main(["show", "both.jsonl", "matmul", "--args", "8,8", "--target", "cpu -mcpu=x86-64 -threads=1"]) == 1
    said = capsys.readouterr().err
    assert "it holds trials for cpu -mcpu=native -threads=1 and cpu -mcpu=native -threads=2: choose one with --target; `ansor show both.jsonl`" in said


@pytest.mark.compiler
def test_a_target_from_a_file_starts_no_program(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = SearchTask(matmul, (8, 8, 8), "cpu -threads=1")
    _recorded("cc.jsonl", task)
    canary = folder / "started"
    text = (folder / "cc.jsonl").read_text().replace("cpu -mcpu=native", f"cpu -cc='touch {canary}' -mcpu=native")
    (folder / "cc.jsonl").write_text(text)
    for command in ("show", "explain"):
        assert main([command, "cc.jsonl", "matmul", "--args", "8,8,8"]) == 1
        said = capsys.readouterr().err
        assert f"if you trust it, pass --target 'cpu -mcpu=native -threads=1' --cc 'touch {canary}'" in said and said.count("\n") == 1
    assert main(["compile", "matmul", "--args", "8,8,8", "--records", "cc.jsonl"]) in (0, 1)
    assert not canary.exists()


def test_a_cache_folder_that_cannot_be_made(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ANSOR_CACHE", str(folder / "scaled.py" / "cache"))
    assert main(["doctor"]) == 1
    error = capsys.readouterr().err
    assert "cannot be made (Not a directory); set ANSOR_CACHE to another" in error and error.count("\n") == 1


@pytest.mark.compiler
def test_tune_show_continue_compile(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "scaled.py", "--trials", "3", "--threads", "1", "--output", "kernels"]) == 0
    said = capsys.readouterr().out
    assert "3/3 trials, " in said and "1 kernel saved in kernels" in said
    assert (folder / "kernels" / "00_scaled_8_16" / "kernel.c").is_file()

    assert main(["tune", "scaled.py", "--trials", "5", "--threads", "1"]) == 0
    assert "continuing after 3 recorded trials" in capsys.readouterr().out
    assert len(load("scaled.jsonl").records) == 5

    assert main(["tune", "scaled.py", "--trials", "5", "--threads", "1"]) == 0
    assert "5 recorded trials used up the budget of 5: nothing to measure; trials=10 (--trials 10) would measure 5 more" in capsys.readouterr().out

    assert main(["show", "scaled.jsonl"]) == 0
    assert load("scaled.jsonl").records[0].workload in capsys.readouterr().out, "the whole key"
    assert main(["show", "scaled.jsonl", "scaled.py", "--threads", "1"]) == 0
    assert "a: float32[8, 16] input" in capsys.readouterr().out
    assert main(["show", "scaled.jsonl", "scaled.py", "--threads", "1", "--source"]) == 0
    assert "void" in capsys.readouterr().out
    assert main(["show", "scaled.jsonl", "scaled.py", "--threads", "1", "--passes"]) == 0
    passes = re.findall(r"^-- (\w+): ", capsys.readouterr().out, re.MULTILINE)
    assert passes == ["regions", "scopes", "values", "nests", "simplify", "cases", "sums", "places", "patterns", "tree", "text"]
    assert main(["show", "scaled.jsonl", "--passes"]) == 1
    assert "which is for one program; name it: ansor show scaled.jsonl NAME --passes" in capsys.readouterr().err
    assert main(["show", "scaled.jsonl", "scaled.py", "--args", "9"]) == 1
    said = capsys.readouterr().err
    assert "has no valid record of scaled(9, 16) for target" in said and "on this machine; it holds scaled(8, 16)" in said

    assert main(["compile", "scaled.py", "--threads", "1"]) == 0
    assert "1 from records, 0 picked by the model" in capsys.readouterr().out


def _recorded(path: str, *tasks: SearchTask, valid: bool = True) -> None:
    """Two trials of each task, not measured but made up."""
    with RecordFile(path, make_header(CToolchain(find_compiler()))) as file:
        for task in tasks:
            for k, space in enumerate(task.spaces[:2]):
                steps, row, seconds = json.loads(space.sketch.name), (0,) * len(space.sizes), (1e-3 * (k + 1),) if valid else ()
                failure = None if valid else Failure("compile", "no")
                file.append(Record(task.workload_key, record_target(task.target), steps, row, seconds, failure, algorithm=space.algorithm))


@pytest.mark.compiler
def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    small, default = (SearchTask(matmul, args, "cpu -threads=1") for args in ((16, 16, 16), ()))
    _recorded("small.jsonl", small)
    assert main(["explain", "small.jsonl", "matmul", "--args", "16,16,16", "--threads", "1", "--peak", "50"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("matmul(16, 16, 16) for cpu -mcpu=native -threads=1\n  2 trials, all valid; best 1 ms") and "of the peak of 50 GFLOP/s" in said
    assert main(["explain", "small.jsonl", "--threads", "1"]) == 1
    assert "whose workload is not a built-in operator with its default sizes; name it" in capsys.readouterr().err

    _recorded("default.jsonl", default)
    assert main(["explain", "default.jsonl", "--threads", "1"]) == 0
    assert capsys.readouterr().out.startswith("matmul(512, 512, 512) for cpu")
    assert main(["explain", "default.jsonl", "--threads", "2"]) == 1
    left = capsys.readouterr()
    assert "2 records left out: made for another target" in left.out and "has no valid record of matmul(512, 512, 512) for target" in left.err

    _recorded("both.jsonl", small, default)
    assert main(["explain", "both.jsonl", "--threads", "1"]) == 1
    assert "which holds trials of 2 workloads; name one" in capsys.readouterr().err
    _recorded("failed.jsonl", small, valid=False)
    assert main(["explain", "failed.jsonl", "matmul", "--args", "16,16,16", "--threads", "1"]) == 1
    assert "has no valid record of matmul" in capsys.readouterr().err


@pytest.mark.compiler
@pytest.mark.torch
def test_explain_a_network(capsys: pytest.CaptureFixture[str]) -> None:
    subject = resolve("net.py")
    assert isinstance(subject, NetworkSubject)
    with pytest.warns(AnsorWarning, match="BatchNorm2d of the model is in training mode"):
        tasks, _ = extract_tasks(*made(subject), "cpu -threads=1")
    _recorded("net.jsonl", *tasks)
    assert main(["explain", "net.jsonl", "net.py", "--threads", "1", "--all"]) == 0
    assert f"{tasks[0].name} for cpu" in capsys.readouterr().out


@pytest.mark.compiler
@pytest.mark.torch
def test_a_network_with_random_weights_equals_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """The model is made once: it is not seeded, and a second one would differ. It is in training mode, too."""
    for command in (["tune", "net.py", "--trials", "2", "--threads", "1"], ["compile", "net.py", "--threads", "1"]):
        assert main(command) == 0
        said = capsys.readouterr()
        difference = float(said.out.rpartition("largest relative difference")[2])
        assert difference < 1e-4
        warning = "ansor: warning: BatchNorm2d of the model is in training mode, but the network computes as in evaluation mode (model.eval())\n"
        assert said.err.count(warning) == 1


@pytest.mark.compiler
def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--threads", "1"]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("compiler", "cost model", "timer", "peak"))


@pytest.mark.compiler
def test_ctrl_c_ends_with_the_best_so_far(folder: Path) -> None:
    command = [sys.executable, "-m", "ansor", "tune", "matmul", "--args", "64,64,64", "--trials", "5000", "--minutes", "1", "--threads", "1"]
    # A shell starts what runs in its background with Ctrl-C ignored, and children inherit that.
    listen = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder, env=environment, preexec_fn=listen
    ) as run:
        assert run.stdout is not None
        said: list[str] = []
        while not said or " trials, " not in said[-1]:
            said.append(run.stdout.readline())
            assert said[-1], said
        run.send_signal(signal.SIGINT)
        said += run.stdout.readlines()
        assert run.wait(60) == 0, said
    assert any("stopped by Ctrl-C" in line for line in said) and said[-1].startswith("matmul(64, 64, 64)")
    assert load(folder / "matmul.jsonl").records


@pytest.mark.compiler
@pytest.mark.parametrize("subject", ["scaled.py", "net.py"])
def test_ctrl_c_with_nothing_to_keep(subject: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The status says whether anything is kept: 130 before the first trial, 0 where earlier runs recorded some."""
    tune = ["tune", subject, "--threads", "1", "--trials", "2", "--records", "r.jsonl"]

    def interrupted(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ansor.commands.tune.peak_gflops", lambda target: None)
    with monkeypatch.context() as patch:
        patch.setattr(TuningRun, "run", interrupted)
        assert main([*tune, "--output", "kernels"]) == 130
    said = capsys.readouterr()
    assert said.err.endswith("ansor: stopped by Ctrl-C before the first trial ended; no trials were recorded\n") and not (folder / "kernels").exists()
    if subject == "scaled.py":
        assert main(tune) == 0
        monkeypatch.setattr(Ledger, "__enter__", interrupted)  # after it has read what was recorded
        capsys.readouterr()
        assert main([*tune[:-3], "50", "--records", "r.jsonl"]) == 0
        assert "stopped by Ctrl-C" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "below a file"])
@pytest.mark.parametrize("command", ["tune matmul --args 16,16,16 --trials 2 --records", "compile matmul --args 16,16,16 --records", "show", "explain"])
def test_records_that_are_no_plain_file_are_told_at_once(
    command: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ansor.commands.tune.peak_gflops", lambda target: pytest.fail("measured the peak first"))
    place = {"pipe": tmp_path / "pipe", "folder": tmp_path, "device": Path("/dev/null"), "below a file": tmp_path / "file" / "r.jsonl"}[kind]
    (tmp_path / "file").touch()
    if kind == "pipe":
        os.mkfifo(place)
    assert main([*command.split(), str(place)]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("ansor: ") and said.err.count("\n") == 1 and str(place) in said.err and "trials/s" not in said.out


@pytest.mark.torch
@pytest.mark.compiler
def test_a_network_is_exported_as_c(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["compile", "net.py", "--export", "out", "--isas", "x86-64-v3", "--threads", "2"]) == 0
    assert capsys.readouterr().out.startswith("exported to out in ")
    assert sorted(path.name for path in (folder / "out" / "kernels").iterdir()) == ["c99", "x86-64-v3"]


@pytest.mark.torch
@pytest.mark.compiler
def test_a_network_is_compiled_where_nothing_can_be_written(capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/proc")
    assert main(["compile", str(folder / "net.py"), "--threads", "1", "--no-compare"]) == 0
    assert "which of PyTorch's kernels are faster is not kept: records cannot be written to net.jsonl: " in capsys.readouterr().out
