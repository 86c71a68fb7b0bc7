"""Builds the exported C files of an integer network, loads them into this process, and runs them on given inputs."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.pool_library import shared_pool
from ansor.codegen.toolchain import compile_files
from ansor.errors import ToolchainError
from ansor.integer.c_text import KERNELS, c_name, is_parallel
from ansor.integer.network_code import NetworkCode
from ansor.integer.saved import save
from ansor.run.machine_checks import check_loads_here

SECONDS = 600.0


class HostNetwork:
    """A network built from the files that `save` writes. Raises TargetError if it is for another machine, and ToolchainError if it does not build."""

    def __init__(self, program: NetworkCode) -> None:
        check_loads_here(program.target)
        self.program = program
        with tempfile.TemporaryDirectory(prefix="ansor-network-") as folder:
            self._library = ctypes.CDLL(str(_built(program, save(program, folder))))
        size = program.arena_bytes + program.target.alignment
        self._memory = np.zeros(size, np.uint8)
        self._start = -self._memory.ctypes.data % program.target.alignment

    @property
    def arena(self) -> NDArray[np.uint8]:
        """The arena, aligned for the target."""
        return self._memory[self._start : self._start + self.program.arena_bytes]

    def run(self, inputs: Mapping[str, NDArray[np.int8]]) -> dict[str, NDArray[np.int8]]:
        """Run on stored inputs; returns the stored outputs."""
        self.arena[:] = 0xA5  # results must not depend on previous contents
        return self.run_again(inputs)

    def run_again(self, inputs: Mapping[str, NDArray[np.int8]]) -> dict[str, NDArray[np.int8]]:
        """The same without overwriting the arena first. Timing uses this."""
        for name in self.program.network.inputs:
            self._place(name)[:] = inputs[name].reshape(-1)
        self._call()
        return {name: self._place(name).copy().reshape(self.program.network.tensors[name].shape) for name in self.program.network.outputs}

    def _call(self) -> None:
        name, arena = c_name(self.program), ctypes.c_void_p(self.arena.ctypes.data)
        if not is_parallel(self.program):
            self._library[f"{name}_run"](arena)
            return
        pool = shared_pool(self.program.target.threads)  # looked up each time: a forked process has its own pool
        self._library[f"{name}_run_parallel"](arena, ctypes.c_void_p(pool.parallel_for), ctypes.c_void_p(pool.handle))

    def selftest(self) -> int:
        """The result of the self-test in C: 0 if it passes."""
        return int(self._library[f"{c_name(self.program)}_selftest"](ctypes.c_void_p(self.arena.ctypes.data)))

    def _place(self, name: str) -> NDArray[np.int8]:
        begin = self.program.plan.offsets[name]
        return self.arena[begin : begin + self.program.network.tensors[name].size].view(np.int8)


def _built(program: NetworkCode, folder: Path) -> Path:
    toolchain = program.target.toolchain()
    assert isinstance(toolchain, CToolchain)  # save checks it
    sources = [folder / f"{name}.c" for name in ("net", "weights", "selftest")] + sorted((folder / KERNELS).glob("*.c"))
    made = compile_files(toolchain.compiler, sources, folder / "network.so", (*toolchain.flags, f"-I{folder}"), timeout=SECONDS)
    if not made.ok:
        raise ToolchainError(f"asked to build {program.network.name} for {program.target}, but the build failed: {made.text}")
    return folder / "network.so"
