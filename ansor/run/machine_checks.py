"""Checks, before any work starts, that this machine can build, run and time programs for a target."""

from __future__ import annotations

import os

from ansor.codegen.building import Toolchain
from ansor.errors import TargetError
from ansor.support.notices import warn
from ansor.support.settings import cores, writable_cache
from ansor.support.text import counted
from ansor.targets.architecture import foreign
from ansor.targets.base import Target


def check_machine(target: Target, measures: bool) -> None:
    """Raise TargetError for a processor of another architecture and, if the run `measures` programs, for more threads than the cores that this process
    may use (respecting affinity where the system has it).

    Without measuring, programs for more threads may be meant for another machine: this only warns.
    """
    why = foreign(str(target), target.mcpu) if target.is_local else ""
    if why:
        raise TargetError(why)
    if not target.is_local or target.threads <= (usable := cores()):
        return
    machine = os.cpu_count() or 1
    there = f"this machine has {counted(machine, 'core')}" if usable >= machine else f"this process may use {usable} of this machine's {machine} cores"
    found = f"asked for target {target} with {target.threads} threads, but {there}"
    if measures:
        raise TargetError(f"{found}: times would be meaningless; give -threads={usable} or fewer")
    warn(f"{found}: the kernel is made for another machine, and will be slow here")


def check_tools(target: Target) -> Toolchain:
    """The target's toolchain, started once, after checking the cache folder. Raises ToolchainError or CacheError if either does not work.

    Call this before code that, without a compiler, would only warn and go on more slowly.
    """
    writable_cache()
    return target.toolchain()


def check_loads_here(target: Target) -> None:
    """Raise TargetError for a target whose programs do not run in this process: a compiled network is a callable here."""
    if target.is_local:
        return
    if not target.plain_loops:
        raise TargetError(
            f"asked to compile a network for {target}, which runs no programs of this process: a core runs the middle of an int8 network, beside a host: "
            "use ansor.offload.build (docs/vta.md)"
        )
    raise TargetError(
        f"asked to compile a network for {target}, whose programs run on {target.device}, not in this process; tune its kernels with "
        "ansor.extract_tasks(model, inputs, target) and ansor.tune_tasks(tasks, ...), or make C of it in 8-bit integers: `ansor compile --int8`"
    )
