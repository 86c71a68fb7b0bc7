"""Runs consecutive steps with our kernels as one call into C, by `step_run.c`: no Python code runs between them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ansor.codegen.optional_library import loaded_if_built
from ansor.codegen.pool_library import shared_pool
from ansor.codegen.toolchain import Compiler, cached_library, find_compiler
from ansor.networks.network_kernel import PreparedCall

if TYPE_CHECKING:
    from ansor.graph.indices import IndexCheck
    from ansor.graph.network import Step

SOURCE = Path(__file__).with_name("step_run.c")


class _Check(ctypes.Structure):
    _fields_ = (("indices", ctypes.c_void_p), ("count", ctypes.c_int64), ("bytes", ctypes.c_int64), ("rows", ctypes.c_uint64))


class _Step(ctypes.Structure):
    _fields_ = (
        ("kernel", ctypes.c_void_p), ("arguments", ctypes.c_void_p), ("checks", ctypes.c_void_p), ("check_count", ctypes.c_int64),
        ("parallel", ctypes.c_int64),
    )  # fmt: skip


def step_run_library(compiler: Compiler) -> Path:
    """The shared library of `step_run.c`. Raises ToolchainError if it does not build."""
    return cached_library(compiler, "step-run", SOURCE.read_text())


def joined(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps, with consecutive steps of our kernels joined into one. Without a compiler they are returned as they are."""
    if sum(_call_of(step) is not None for step in steps) < 2:
        return tuple(steps)
    library = _library()
    found: list[Step] = []
    for own, several in groupby(steps, lambda step: _call_of(step) is not None):
        taken = tuple(several)
        found += [StepRun(library, taken)] if own and len(taken) > 1 and library is not None else taken
    return tuple(found)


def _call_of(step: Step) -> PreparedCall | None:
    """The prepared call of a step with our kernel; None for any other step."""
    from ansor.graph.network import CheckedStep

    inner = step.step if isinstance(step, CheckedStep) else step
    return inner if isinstance(inner, PreparedCall) and inner.function else None


@lru_cache
def _library() -> ctypes.CDLL | None:
    loaded = loaded_if_built(lambda: step_run_library(find_compiler()), "networks run step by step, which takes microseconds longer per step")
    if loaded is not None:
        loaded.ansor_step_run.argtypes = [ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 4]
        loaded.ansor_step_run.restype = ctypes.c_int64
    return loaded


class StepRun:
    """Several steps as one. `steps` keep alive the memory that they read and write."""

    def __init__(self, library: ctypes.CDLL, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)
        calls = [call for call in map(_call_of, steps) if call is not None]
        self._run = library.ansor_step_run
        self._checks = [check for step in steps for check in _checks_of(step)]
        self._arguments = [(ctypes.c_void_p * len(call.arrays))(*(array.ctypes.data for array in call.arrays)) for call in calls]
        self._tables = [_checks_in_c(_checks_of(step)) for step in steps]
        self._table = (_Step * len(calls))(*(
            _Step(call.function, ctypes.addressof(arguments), ctypes.addressof(checks), len(checks), call.kernel.code.threads > 1)
            for call, arguments, checks in zip(calls, self._arguments, self._tables, strict=True)
        ))  # fmt: skip
        self._workspace = calls[0].workspace
        self._threads = max(call.kernel.code.threads for call in calls)

    def __call__(self) -> None:
        """Raises OutOfRangeError if an index is out of range."""
        self._called(None)

    def timed(self) -> list[float]:
        """The same; returns the seconds of each step."""
        times = (ctypes.c_int64 * (len(self.steps) + 1))()
        self._called(ctypes.addressof(times))
        return [(end - begin) / 1e9 for begin, end in pairwise(times)]

    def _called(self, times: int | None) -> None:
        pool = shared_pool(self._threads) if self._threads > 1 else None  # fetched for each run: a forked process has its own
        parallel = (pool.parallel_for, pool.handle) if pool is not None else (None, None)
        failed = self._run(ctypes.addressof(self._table), len(self._table), self._workspace, *parallel, times)
        if failed >= 0:
            self._checks[failed]()


def _checks_of(step: Step) -> Sequence[IndexCheck]:
    from ansor.graph.network import CheckedStep

    return step.checks if isinstance(step, CheckedStep) else ()


def _checks_in_c(checks: Sequence[IndexCheck]) -> ctypes.Array[_Check]:
    return (_Check * len(checks))(*(_Check(one.indices.ctypes.data, one.indices.size, one.indices.itemsize, one.rows) for one in checks))
