"""The arithmetic that a target does at most, for shares of the peak: measured once in a process."""

from __future__ import annotations

from functools import lru_cache

from ansor.codegen.toolchain import find_compiler
from ansor.errors import AnsorError
from ansor.measure.peak import measure_peak
from ansor.targets.base import Target


@lru_cache
def peak_gflops(target: Target) -> float | None:
    """Measured peak of the target's threads, in about a second; None when it cannot be measured here."""
    if not target.is_local:
        return None
    try:
        return measure_peak(find_compiler(target.compiler), vector_bytes=target.vector_bytes, threads=target.threads, mcpu=target.mcpu).gflops
    except (AnsorError, OSError):
        return None
