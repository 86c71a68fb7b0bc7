"""Programs for several systems: small, static, and the same objects for every candidate."""

from __future__ import annotations

import pytest

from ansor.codegen.artifact import LIBRARY, PROGRAM
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import Argument
from ansor.codegen.toolchain import find_compiler
from ansor.codegen.trial.program import trial_objects
from ansor.errors import ToolchainError
from tests.trial_programs import AARCH64, ARM, HERE, RISCV64, Machine, built, kernel

SOURCE = kernel("((float *)args[1])[0] = tanhf(((float *)args[0])[0]);", [Argument("A", (1,), "float32", "input"), Argument("C", (1,), "float32", "output")])


@pytest.mark.compiler
@pytest.mark.parametrize("machine", (HERE, AARCH64, ARM, RISCV64), ids=lambda machine: machine.triple)
def test_a_program_is_small_and_static(machine: Machine) -> None:
    whole = built(SOURCE, machine).read_bytes()
    assert len(whole) <= 60_000 and whole[:4] == b"\x7fELF" and b"/ld-" not in whole and b".debug" not in whole


@pytest.mark.compiler
def test_objects_are_built_once() -> None:
    compiler = find_compiler()
    first, again = (trial_objects(compiler, HERE.triple, pool=True) for _ in range(2))
    assert first == again and len(first) == 3 and all(path.suffix == ".o" for path in first)
    stamps = [path.stat().st_mtime_ns for path in first]
    assert [path.stat().st_mtime_ns for path in trial_objects(compiler, HERE.triple, pool=True)] == stamps


@pytest.mark.compiler
def test_a_processor_that_the_compiler_does_not_know_is_said_before_any_candidate() -> None:
    with pytest.raises(ToolchainError, match="cannot build programs for aarch64-linux-musl"):
        CToolchain(find_compiler(), "cortex-z99", "aarch64-linux-musl").prepare(PROGRAM)


def test_libraries_are_for_this_system_alone() -> None:
    compiler = find_compiler()
    assert CToolchain(compiler).forms() == (LIBRARY, PROGRAM) and CToolchain(compiler, "cortex_a53", "aarch64-linux-musl").forms() == (PROGRAM,)
    with pytest.raises(ToolchainError, match="asked for the form 'library'"):
        CToolchain(compiler, "cortex_a53", "aarch64-linux-musl").prepare(LIBRARY)
