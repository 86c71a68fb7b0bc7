"""Programs for other machines, as C with a self-test that builds and runs there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import ansor
from ansor import te
from ansor.codegen.toolchain import Compiler, find_compiler
from ansor.errors import MeasureError, ToolchainError
from ansor.measure.trial.proof import HostProof
from ansor.run.board_program import TEST
from ansor.run.program import UNMEASURED, Program, build_text, files_of
from ansor.support import settings
from ansor.targets.unit import INSTRUCTIONS
from ansor.te import nn
from ansor.te.tensor import Tensor

ARM = "arm -mcpu=cortex-a72"


def convolution() -> list[Tensor]:
    data, weight = te.placeholder((1, 8, 14, 14), name="data"), te.placeholder((16, 8, 3, 3), name="weight", constant=True)
    return [data, weight, nn.relu(nn.conv2d(data, weight, padding=1))]


@pytest.fixture(scope="module")
def program() -> Program:
    said: list[str] = []
    found = ansor.auto_schedule(convolution, target=ARM, trials=0, report=said.append)
    assert isinstance(found, Program) and said == ["convolution: chosen by the estimate, because there is no cost model for arm"]
    return found


def self_test(folder: Path, triple: str, mcpu: str, run: str) -> subprocess.CompletedProcess[str]:
    zig = find_compiler("zig").command
    names = {"CC": f"{' '.join(zig)} -target {triple}", "MCPU": f"-mcpu={mcpu}", "AR": f"{zig[0]} ar", "RUN": run}
    caches = {"ZIG_GLOBAL_CACHE_DIR": str(settings.cache_part("zig")), "ZIG_LOCAL_CACHE_DIR": str(folder / "zig")}
    environment = {**os.environ, **names, **caches, "LDFLAGS": "-s"}  # with debug information the compiler would build a C library for this alone
    return subprocess.run(["sh", str(folder / "build.sh"), "test"], env=environment, capture_output=True, text=True, timeout=600, check=False)


def test_it_has_what_a_kernel_has_and_is_not_called(program: Program) -> None:
    assert program.source == program.code.text and "for " in program.schedule and (program.cost, program.unit) == (None, INSTRUCTIONS)
    assert "for arm -mcpu=cortex-a72 -threads=1: data float32[1, 8, 14, 14]" in repr(program) and program.stats == {}
    with pytest.raises(MeasureError, match="asked to call convolution, a program for arm .* which does not run in this process; use save"):
        program(1)


@pytest.mark.compiler
@pytest.mark.usefixtures("emulators")
def test_what_is_saved_builds_by_itself_and_proves_itself(program: Program, tmp_path: Path) -> None:
    folder = program.save(tmp_path / "saved")
    assert "#define CONVOLUTION_WORKSPACE_BYTES" in (folder / "convolution.h").read_text()
    done = self_test(folder, "aarch64-linux-musl", "cortex_a72", "qemu-aarch64")
    assert (done.returncode, done.stdout) == (0, "convolution: right\n"), done.stderr
    assert (folder / "libconvolution.a").stat().st_size > 0
    text = (folder / "convolution.c").read_text()
    (folder / "convolution.c").write_text(f"{text[: text.rindex('}')]}  ((float *)args[2])[5] += 0.5f;\n}}\n")
    broken = self_test(folder, "aarch64-linux-musl", "cortex_a72", "qemu-aarch64")
    assert broken.returncode == 1 and "convolution: wrong" in broken.stdout


@pytest.mark.compiler
@pytest.mark.usefixtures("emulators")
def test_roots_are_tested_with_positive_inputs(tmp_path: Path) -> None:
    x = te.placeholder((40,), name="x")
    found = ansor.auto_schedule([x, te.compute((40,), lambda i: te.sqrt(x[i]) + te.log(x[i]), name="y")], target=ARM, trials=0)
    assert isinstance(found, Program)
    done = self_test(found.save(tmp_path / "saved"), "aarch64-linux-musl", "cortex_a72", "qemu-aarch64")
    assert (done.returncode, done.stdout) == (0, "y: right\n"), done.stdout + done.stderr


def long_sum() -> list[Tensor]:
    data, weight = te.placeholder((4, 256), name="data"), te.placeholder((4, 256), name="weight")
    return [data, weight, nn.dense(data, weight)]


@pytest.fixture(scope="module")
def summing() -> Program:
    found = ansor.auto_schedule(long_sum, target=ARM, trials=0, progress=False)
    assert isinstance(found, Program)
    return found


@pytest.mark.compiler
def test_the_bound_of_long_sums_is_assumed_where_no_compiler_works(summing: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(command: str = "") -> Compiler:
        raise ToolchainError(f"no compiler {command!r}")

    measured = files_of(summing)
    monkeypatch.setattr("ansor.measure.trial.proof.find_compiler", none)
    assumed = files_of(summing)
    differ = {name for name, text in assumed.items() if measured[name] != text}
    assert assumed.keys() == measured.keys() and "build.sh" in differ <= {"build.sh", f"{TEST}/kernel-usual.txt", f"{TEST}/kernel-positive.txt"}
    assert UNMEASURED in assumed["build.sh"] and UNMEASURED not in measured["build.sh"]


@pytest.mark.compiler
def test_the_harness_is_loaded_once_for_a_program(summing: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[HostProof] = []

    class Counted(HostProof):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr("ansor.run.program.HostProof", Counted)
    files_of(summing)
    assert len(made) == 1


def test_a_folder_that_cannot_be_written_to_is_told(program: Program, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MeasureError, match="asked to save a program in .* which cannot be written to"):
        program.save(tmp_path / "file")


@pytest.mark.parametrize(("features", "told"), [("", ""), (" -mattr=+dotprod", "+dotprod"), (" -mattr=-dotprod", "+nodotprod")])
def test_compilers_are_told_the_features(features: str, told: str) -> None:
    mcpu = "cortex-a76" if "-dot" in features else "cortex-a72"
    found = ansor.auto_schedule(convolution, target=f"arm -mcpu={mcpu}{features}", trials=0, progress=False)
    assert isinstance(found, Program) and f"MCPU=${{MCPU--mcpu={mcpu}{told}}}" in build_text(found)
