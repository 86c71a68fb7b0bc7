"""Trial programs built and run in tests: natively, or under QEMU."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import Argument, CSource
from ansor.codegen.toolchain import find_compiler
from ansor.codegen.trial.program import triple_here
from ansor.measure.trial.recipe import Source, input_lines, recipe_text

HEAD = """
#include <string.h>
#include <math.h>
typedef void (*parallel_for_t)(void *, void (*)(void *, long, long), void *, long);
"""
PARAMETERS = "void *const *args, unsigned char *workspace, parallel_for_t parallel_for, void *pool"


@dataclass(frozen=True)
class Machine:
    """A system that runs programs. `emulator`: '' for this machine."""

    triple: str
    mcpu: str
    emulator: str = ""
    cpu: str = "max"

    @property
    def toolchain(self) -> CToolchain:
        """The compiler for it."""
        return CToolchain(find_compiler(), self.mcpu, self.triple)

    def command(self, program: Path) -> list[str]:
        """The command that starts a program."""
        return [str(shutil.which(self.emulator)), "-cpu", self.cpu, str(program)] if self.emulator else [str(program)]


HERE = Machine(triple_here(), "native")
AARCH64 = Machine("aarch64-linux-musl", "cortex_a72", "qemu-aarch64", "cortex-a72")
ARM = Machine("arm-linux-musleabihf", "cortex_a7", "qemu-arm")
RISCV64 = Machine("riscv64-linux-musl", "sifive_u74", "qemu-riscv64", "rv64")


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="ansor-trial-"))


def built(source: CSource, machine: Machine = HERE) -> Path:
    """The program of a source."""
    toolchain = machine.toolchain
    toolchain.prepare("program")
    folder = Path(tempfile.mkdtemp(dir=_folder()))
    making = toolchain.build([source], "program", folder / "program", timeout=300)
    assert making.said.ok, making.said.text
    return making.artifacts[0].path


def said(program: Path, recipe: str, mode: str = "trial", kept: str = "-", machine: Machine = HERE, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """A program's answer to a recipe."""
    command = [*machine.command(program), mode, kept]
    return subprocess.run(command, input=recipe, capture_output=True, text=True, timeout=timeout, check=False, cwd=program.parent)


def kernel(body: str, arguments: Sequence[Argument], *, workspace_bytes: int = 0, threads: int = 1, tolerance: float = 1.0) -> CSource:
    """A candidate written by hand; `body` sees args and workspace."""
    return CSource(f"{HEAD}\nvoid kernel({PARAMETERS}) {{\n{body}\n}}\n", "kernel", tuple(arguments), workspace_bytes, threads, tolerance)


def outputs_of(source: CSource, program: Path, sources: dict[str, Source], machine: Machine = HERE) -> dict[str, NDArray[np.generic]]:
    """Everything a program writes, by name."""
    place = program.parent / "outputs"
    answer = said(program, recipe_text([*input_lines(source.arguments, sources), f"outputs {place}"]), machine=machine)
    assert answer.returncode == 0 and '"costs"' in answer.stdout, answer
    whole, found = place.read_bytes(), {}
    for one in source.arguments:
        if one.role == "output":
            size = one.physical_size * np.dtype(one.dtype).itemsize
            found[one.name] = np.frombuffer(whole[:size], one.dtype).reshape(one.shape)
            whole = whole[size:]
    return found
