"""Whether this machine can build, run and time programs for a target: asked before any work starts."""

from __future__ import annotations

import os

from ansor.codegen.building import Toolchain
from ansor.errors import TargetError
from ansor.support.notices import warn
from ansor.support.settings import cores, writable_cache
from ansor.support.text import counted
from ansor.targets.architecture import architecture_here, architecture_of
from ansor.targets.base import Target


def check_machine(target: Target, measures: bool) -> None:
    """Raises TargetError for a processor of another architecture, and, where programs are `measured`, for more threads than there are cores that
    this process may use (affinity counts where the system has it).

    Programs for more threads may be generated for another machine: that is warned of.
    """
    wanted, here = architecture_of(target.mcpu), architecture_here()
    if target.is_local and wanted not in ("", here):
        raise TargetError(
            f"asked for target {target}, {_article(wanted)} processor, but this machine is {here}, and kernels are built and run where ansor runs; "
            "leave -mcpu out, or name a processor of this architecture"
        )
    if not target.is_local or target.threads <= (usable := cores()):
        return
    machine = os.cpu_count() or 1
    there = f"this machine has {counted(machine, 'core')}" if usable >= machine else f"this process may use {usable} of this machine's {machine} cores"
    found = f"asked for target {target} with {target.threads} threads, but {there}"
    if measures:
        raise TargetError(f"{found}: times would be meaningless; give -threads={usable} or fewer")
    warn(f"{found}: the kernel is made for another machine, and will be slow here")


def check_tools(target: Target) -> Toolchain:
    """What builds the target's programs, started once, and the cache folder it needs. Raises ToolchainError and CacheError where they do not work.

    Asked ahead of what goes on without a compiler, more slowly, and warns of it.
    """
    writable_cache()
    return target.toolchain()


def _article(architecture: str) -> str:
    return f"an {architecture}" if architecture[0] in "aAxX" else f"a {architecture}"


def check_loads_here(target: Target) -> None:
    """Raises TargetError for a target whose programs do not run in this process: a network is one callable here."""
    if target.is_local:
        return
    if not target.plain_loops:
        raise TargetError(
            f"asked to compile a network for {target}, which runs no programs of this process: a core runs the middle of an int8 network, beside a host: "
            "use ansor.offload.build (docs/vta.md)"
        )
    raise TargetError(
        f"asked to compile a network for {target}, whose programs run on {target.device}, not in this process; tune its kernels with "
        "ansor.extract_tasks(model, inputs, target) and ansor.tune_tasks(tasks, ...)"
    )
