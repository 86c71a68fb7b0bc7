"""What the machine fails at is told from what programs fail at, tried again, and never blamed on them."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from ansor.codegen import toolchain
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import Compiler, cached_library, find_compiler
from ansor.errors import CacheError, MachineTrouble, ToolchainError
from ansor.measure import builder as builders
from ansor.measure import runner as runners
from ansor.measure.builder import Builder
from ansor.measure.failure import Failure
from ansor.measure.harness import harness_library
from ansor.measure.kernel import build_kernels
from ansor.measure.machine_trouble import ALONE, KIND, check_trouble, is_trouble, settled
from ansor.measure.measure_task import MeasureTask
from ansor.measure.measurer import Candidate, Measurer
from ansor.measure.record import load
from ansor.measure.runner import Runner
from ansor.measure.timing import TimingOptions
from ansor.support.shortage import is_trouble_of_system, sentence, sentence_of

GOOD = "for (long i = 0; i < n; ++i) c[i] = a[i] + b[i];"
QUICK = TimingOptions(min_repeat_ms=0.5, timeout_seconds=5.0)
MakeSource = Callable[..., CSource]

SAID = [
    ("zig: error: ProcessFdQuotaExceeded", "file descriptors", "ulimit -n"), ("sh: Too many open files", "file descriptors", "ulimit -n"),
    ("ld: final link failed: No space left on device", "disk space", "free space"), ("error: NoSpaceLeft", "disk space", "free space"),
    ("x.o: Read-only file system", "writable disks", "a writable disk"), ("fork: Resource temporarily unavailable", "processes", "ulimit -u"),
    ("cc1: out of memory allocating 8 bytes", "memory", "ANSOR_JOBS"), ("gcc: fatal error: Killed signal terminated program cc1", "memory", "ANSOR_JOBS"),
    ("the compiler was killed (SIGKILL); ", "memory", "ANSOR_JOBS"), ("mmap: Cannot allocate memory", "memory", "ANSOR_JOBS"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "what", "cure"), SAID)
def test_what_tools_say(said: str, what: str, cure: str) -> None:
    assert is_trouble("compile", said) and is_trouble("reference", f"the reference did not build: compile: {said}") and not is_trouble("crash", said)
    told = sentence(f"{said}\n  and more")
    assert what in told and cure in told and "\n" not in told
    own = settled(Failure("compile", said), plain_works=True)
    assert own.kind == "compile" and not is_trouble(own.kind, own.text)
    assert settled(Failure("compile", said), plain_works=False) == Failure(KIND, sentence(said))
    assert settled(Failure(KIND, said), plain_works=True).kind == KIND


def test_refusals_of_the_system() -> None:
    for number in (errno.EMFILE, errno.ENOSPC, errno.ENOMEM, errno.EAGAIN):
        wrapped = RuntimeError("could not be started")
        wrapped.__cause__ = OSError(number, os.strerror(number))
        assert is_trouble_of_system(wrapped) and is_trouble_of_system(wrapped.__cause__)
    assert is_trouble_of_system(MemoryError()) and not is_trouble_of_system(ValueError()) and not is_trouble_of_system(OSError(errno.EISDIR, ""))
    check_trouble(None)
    check_trouble(Failure("crash", "SIGSEGV"))
    with pytest.raises(MachineTrouble, match="no space"):
        check_trouble(Failure(KIND, "no space"))


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(("said", "what", "cure"), SAID)
def test_a_compiler_that_cannot_be_asked_for_want_of_something(said: str, what: str, cure: str, tmp_path: Path) -> None:
    script = tmp_path / "cc"
    script.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
    script.chmod(0o755)
    with pytest.raises(MachineTrouble, match=f"run out of {what}.*{re.escape(cure)}"):
        find_compiler(str(script))


@pytest.mark.usefixtures("hasty")
def test_a_compiler_that_cannot_be_started_for_want_of_descriptors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "cc"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)

    def refused(number: int) -> None:
        def popen(*args: object, **kwargs: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(toolchain.subprocess, "Popen", popen)  # type: ignore[attr-defined]  # the module's own

    refused(errno.EMFILE)
    with pytest.raises(MachineTrouble, match="run out of file descriptors.*raise `ulimit -n`"):
        find_compiler(str(script))
    refused(errno.EACCES)
    with pytest.raises(ToolchainError, match="could not be started: .*Permission denied; name another"):
        find_compiler(str(script))


@pytest.mark.compiler
@pytest.mark.usefixtures("hasty")
def test_kernels_and_helpers_that_the_machine_cannot_build(compiler: Compiler, tmp_path: Path, source_of: MakeSource) -> None:
    full = scripted(compiler, tmp_path, f"[ -e {tmp_path}/full ] && {{ echo 'No space left on device' >&2; exit 1; }}")
    build_kernels([source_of(GOOD)], CToolchain(full))
    (tmp_path / "full").touch()
    assert len(build_kernels([source_of(GOOD)], CToolchain(full))) == 1, "it was kept, and needs no compiler"
    with pytest.raises(MachineTrouble, match="run out of disk space"):
        build_kernels([source_of(f"{GOOD}/* {tmp_path} */\n")], CToolchain(full))
    with pytest.raises(MachineTrouble, match="run out of disk space"):
        cached_library(full, "helper", f"int helper_{os.getpid()};")


@pytest.mark.compiler
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("times", [1, 5, 6])
def test_a_compiler_that_is_killed_is_called_again(times: int, compiler: Compiler, tmp_path: Path) -> None:
    """Five times; then it is said once, and without a mark too many."""
    killed = scripted(compiler, tmp_path, f"n=$(cat {tmp_path}/n 2>/dev/null || echo 0); [ $n -lt {times} ] && {{ echo $((n+1)) > {tmp_path}/n; kill -9 $$; }}")
    text = f"int killed_{os.getpid()}_{times};"
    if times < 6:
        assert cached_library(killed, "helper", text).exists()
        return
    with pytest.raises(MachineTrouble, match=r"not the program's fault: the compiler was killed \(SIGKILL\); free memory, or lower ANSOR_JOBS, and run"):
        cached_library(killed, "helper", text)


@pytest.mark.usefixtures("hasty")
def test_a_compiler_that_is_killed_when_asked_is_asked_again(tmp_path: Path) -> None:
    script = tmp_path / "cc"
    script.write_text(f"#!/bin/sh\n[ -e {tmp_path}/once ] || {{ touch {tmp_path}/once; kill -9 $$; }}\necho '#define __GNUC__ 12'\n")
    script.chmod(0o755)
    assert find_compiler(str(script)).kind == "gcc"


@pytest.mark.compiler
@pytest.mark.usefixtures("hasty")
def test_a_full_cache_folder_is_told_whatever_the_compiler_says(compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings = "; ".join(["echo 'warning: unexpected EOF reading a file'"] * 24)
    failing = scripted(compiler, tmp_path, f"{warnings}; exit 1")
    with pytest.raises(ToolchainError, match="name another with --cc"):
        cached_library(failing, "helper", f"int full_{os.getpid()};")
    monkeypatch.setattr(toolchain.shutil, "disk_usage", lambda folder: SimpleNamespace(free=4096))  # type: ignore[attr-defined]  # the module's own
    with pytest.raises(CacheError) as found:
        cached_library(failing, "helper", f"int full_{os.getpid()};")
    assert re.fullmatch(r"no space in the cache folder \S+: 4 kB are free; free some space, or set ANSOR_CACHE to another folder", str(found.value))


def test_of_many_lines_the_one_that_tells_is_said() -> None:
    for before, after in (("warning: a file of zig's\n" * 30, ""), ("", "\n/some/path/x.c"), ("note: 1\n", "\nnote: 2")):
        told = sentence(f"{before}error: file_open ProcessFdQuotaExceeded;{after}")
        assert told.endswith("not the program's fault: error: file_open ProcessFdQuotaExceeded; raise `ulimit -n`, or close files, and run the same again")


def test_errors_of_python_that_are_the_machines() -> None:
    for error, what in (
        (MemoryError(), "memory"), (MemoryError("Unable to allocate 2 GiB"), "memory: .*2 GiB"), (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "memory"),
        (OSError(errno.EFBIG, os.strerror(errno.EFBIG), "some/file"), "file size limit.*'some/file'; raise `ulimit -f`"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "some/file"), "disk space.*'some/file'"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), "disk space"), (OSError(errno.EMFILE, os.strerror(errno.EMFILE), "x"), "file descriptors"),
        (OSError(errno.ENFILE, os.strerror(errno.ENFILE)), "file descriptors"),
    ):  # fmt: skip
        said = sentence_of(error)
        assert said is not None and re.match("the machine has run out of .*", said) and re.search(what.replace(": .*", ".*"), said) and "\n" not in said
    for other in (ValueError("out of memory"), FileNotFoundError(errno.ENOENT, "No such file or directory", "x"), PermissionError(errno.EACCES, "denied")):
        assert sentence_of(other) is None


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits before the next attempt."""
    monkeypatch.setattr(builders, "COMPILER_PAUSES", (0.0,) * 5)
    monkeypatch.setattr(runners, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(toolchain, "COMPILER_PAUSES", (0.0,) * 5)


def scripted(compiler: Compiler, folder: Path, text: str) -> Compiler:
    """A compiler that runs a line of shell first."""
    script = folder / "cc.sh"
    script.write_text(f'#!/bin/sh\n{text}\nexec {" ".join(compiler.command)} "$@"\n')
    script.chmod(0o755)
    return replace(compiler, command=(str(script),))


@pytest.mark.compiler
@pytest.mark.usefixtures("hasty")
def test_passing_trouble_costs_nothing(compiler: Compiler, tmp_path: Path, source_of: MakeSource) -> None:
    ill = f'if [ -e {tmp_path}/ill ]; then rm {tmp_path}/ill; echo "error: No space left on device" >&2; exit 1; fi'
    with Builder(CToolchain(scripted(compiler, tmp_path, ill)), jobs=1) as builder:
        (tmp_path / "ill").touch()
        (built,) = builder.build([source_of(GOOD)])
    assert built.failure is None and not (tmp_path / "ill").exists()


@pytest.mark.compiler
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(("ill", "words"), [("kill -9 $$", "run out of memory"), ("echo 'out of memory' >&2; exit 1", "run out of memory")])
def test_trouble_that_stays_is_the_machines(compiler: Compiler, tmp_path: Path, source_of: MakeSource, ill: str, words: str) -> None:
    with Builder(CToolchain(scripted(compiler, tmp_path, f"[ -e {tmp_path}/ill ] && {{ {ill}; }}")), jobs=1) as builder:
        (tmp_path / "ill").touch()
        built = builder.build([source_of(GOOD), source_of("undeclared;")])
        assert all(one.failure is not None and one.failure.kind == KIND and words in one.failure.text for one in built)
        (tmp_path / "ill").unlink()
        first, second = builder.build([source_of(GOOD), source_of("undeclared;")])
        assert first.failure is None and second.failure is not None and second.failure.kind == "compile"


@pytest.mark.compiler
@pytest.mark.usefixtures("hasty")
def test_a_program_that_kills_its_compiler_fails_alone(compiler: Compiler, tmp_path: Path, source_of: MakeSource) -> None:
    script = scripted(compiler, tmp_path, 'for name in "$@"; do case $name in *.c) if grep -q doom $name; then kill -9 $$; fi;; esac; done')
    with Builder(CToolchain(script), jobs=1) as builder:
        first, second = builder.build([source_of(GOOD), source_of("/* doom */")])
    assert first.failure is None
    assert second.failure is not None and second.failure.kind == "compile" and second.failure.text.endswith(f"({ALONE})")


@pytest.mark.compiler
@pytest.mark.usefixtures("hasty")
def test_a_compiler_that_is_killed_half_the_time_builds_everything(compiler: Compiler, tmp_path: Path, source_of: MakeSource) -> None:
    """And no text is blamed for it."""
    (tmp_path / "n").write_text("1\n")
    killed = f"n=$(( ($(cat {tmp_path}/n) * 1103515245 + 12345) % 2147483648 )); echo $n > {tmp_path}/n; [ $n -lt 1073741824 ] && kill -9 $$"
    with Builder(CToolchain(scripted(compiler, tmp_path, f"[ -e {tmp_path}/ill ] && {{ {killed}; }}")), jobs=1) as builder:
        (tmp_path / "ill").touch()
        built = builder.build([source_of(f"{GOOD} /* {k} */") for k in range(12)])
    assert [one.failure for one in built] == [None] * 12


@pytest.mark.compiler
@pytest.mark.usefixtures("hasty")
def test_no_room_in_the_work_folder(compiler: Compiler, source_of: MakeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Builder(CToolchain(compiler), jobs=1) as builder:
        monkeypatch.setattr(builders.tempfile, "mkdtemp", full)  # type: ignore[attr-defined]  # the module's own
        (built,) = builder.build([source_of(GOOD)])
        assert built.failure is not None and built.failure.kind == KIND and "run out of disk space" in built.failure.text
        builder.release([built])


@pytest.mark.compiler
@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize(("size", "words"), [(0, "does not load: .*file too short"), (4000, "process was lost")])
def test_a_helper_that_does_not_load(
    compiler: Compiler, tmp_path: Path, build: Callable[[CSource], Path], source_of: MakeSource, size: int, words: str
) -> None:
    harness = tmp_path / "harness.so"
    harness.write_bytes(harness_library(compiler).read_bytes()[:size])
    source = source_of(GOOD)
    with Runner(harness, options=QUICK) as runner:
        runner.define("add", source)
        failure = runner.run("add", source, build(source)).failure
    assert failure is not None and failure.kind == KIND and re.search(words, failure.text) and "`ansor doctor`" in failure.text


@pytest.mark.compiler
@pytest.mark.usefixtures("hasty")
def test_a_worker_that_cannot_start(compiler: Compiler, build: Callable[[CSource], Path], source_of: MakeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of(GOOD)
    library = build(source)
    with Runner(harness_library(compiler), options=QUICK) as runner:
        runner.define("add", source)
        started = subprocess.Popen

        def refused(*args: object, **kwargs: object) -> object:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

        monkeypatch.setattr(runners.subprocess, "Popen", refused)  # type: ignore[attr-defined]  # the module's own
        failure = runner.run("add", source, library).failure
        assert failure is not None and failure.kind == KIND and "run out of file descriptors" in failure.text
        monkeypatch.setattr(runners.subprocess, "Popen", started)  # type: ignore[attr-defined]
        assert runner.run("add", source, library).failure is None


@pytest.mark.compiler
@pytest.mark.usefixtures("hasty")
def test_a_killed_program_is_tried_again(compiler: Compiler, tmp_path: Path, build: Callable[[CSource], Path], source_of: MakeSource) -> None:
    once = source_of(f'if (unlink("{tmp_path}/ill") == 0) kill(getpid(), 9);' + GOOD)
    always = source_of("kill(getpid(), 9);")
    with Runner(harness_library(compiler), options=QUICK) as runner:
        runner.define("add", once)
        library = build(once)
        (tmp_path / "ill").touch()
        assert runner.run("add", once, library).failure is None and not (tmp_path / "ill").exists()
        failure = runner.run("add", always, build(always)).failure
    assert failure is not None and failure.kind == "memory" and failure.text.endswith(f"({ALONE})")


@pytest.mark.compiler
@pytest.mark.usefixtures("hasty")
def test_a_reference_that_cannot_be_built_stops_the_run(compiler: Compiler, tmp_path: Path, source_of: MakeSource) -> None:
    with Measurer(toolchain=CToolchain(scripted(compiler, tmp_path, f"[ -e {tmp_path}/ill ] && kill -9 $$")), timing=QUICK, jobs=1) as measurer:
        job = Candidate(MeasureTask("add", source_of(GOOD, dtype="float64")), source_of(GOOD))
        (tmp_path / "ill").touch()
        with pytest.raises(MachineTrouble, match="run out of memory"):
            list(measurer.measure([job]))
        (tmp_path / "ill").unlink()
        (found,) = measurer.measure([job])
        assert found.costs


OPERATOR = """
from ansor import te
def product(n):
    a, b, k = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B"), te.reduce_axis(n, name="k")
    return [a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]
"""


@pytest.mark.compiler
def test_a_command_without_descriptors_stops_and_the_next_one_measures(compiler: Compiler, tmp_path: Path) -> None:
    (tmp_path / "op.py").write_text(OPERATOR)
    script = scripted(compiler, tmp_path, f'case "$*" in *-ffunction-sections*) [ -e {tmp_path}/ill ] && ulimit -n 8;; esac')
    command = [sys.executable, "-m", "ansor", "tune", "op.py", "--args", "24", "--threads", "1", "--cc", script.command[0], "--records", "r.jsonl"]

    def tune(trials: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, "--trials", str(trials)], cwd=tmp_path, capture_output=True, text=True, timeout=200)

    (tmp_path / "ill").touch()
    ended = tune(4)
    assert ended.returncode == 1 and "run out of file descriptors" in ended.stderr and "Traceback" not in ended.stderr, ended.stdout + ended.stderr
    assert not load(tmp_path / "r.jsonl").records
    (tmp_path / "ill").unlink()
    ended = tune(4)
    assert ended.returncode == 0 and "4/4 trials" in ended.stdout, ended.stdout + ended.stderr
