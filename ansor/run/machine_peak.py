"""The peak arithmetic rate and memory bandwidth of a target, measured once per process."""

from __future__ import annotations

from functools import lru_cache

from ansor.codegen.toolchain import find_compiler
from ansor.errors import AnsorError
from ansor.measure.peak import Peak, measure_peak
from ansor.targets.base import Target


@lru_cache
def machine_peak(target: Target) -> Peak | None:
    """The peak of the target's threads, measured in about a second; None when it cannot be measured here."""
    if not target.is_local:
        return None
    try:
        return measure_peak(find_compiler(target.compiler), vector_bytes=target.vector_bytes, threads=target.threads, mcpu=target.mcpu)
    except (AnsorError, OSError):
        return None


def peak_gflops(target: Target) -> float | None:
    """The arithmetic rate of `machine_peak`."""
    peak = machine_peak(target)
    return None if peak is None else peak.gflops
