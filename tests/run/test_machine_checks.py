"""What a machine cannot run is told before any work."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from ansor.errors import AnsorWarning, CacheError, TargetError, ToolchainError
from ansor.run.machine_checks import check_loads_here, check_machine, check_tools
from ansor.targets import cpu
from ansor.targets.base import Kind, parse_target, register_kind


@pytest.mark.parametrize(("usable", "there"), [(4, "this machine has 4 cores"), (2, "this process may use 2 of this machine's 4 cores")])
def test_threads_are_compared_with_the_cores_that_the_process_may_use(usable: int, there: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(usable)), raising=False)
    target = parse_target(f"cpu -threads={usable + 1}")
    with pytest.raises(TargetError, match=f"with {usable + 1} threads, but {there}: times would be meaningless; give -threads={usable} or fewer"):
        check_machine(target, measures=True)
    with pytest.warns(AnsorWarning, match=f"{there}: the kernel is made for another machine, and will be slow here"):
        check_machine(target, measures=False)
    check_machine(parse_target(f"cpu -threads={usable}"), measures=True)


@pytest.mark.compiler
def test_tools_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    target = parse_target("cpu")
    assert check_tools(target).version == target.toolchain().version
    with pytest.raises(ToolchainError, match="there is no program 'nocc' on the PATH"):
        check_tools(parse_target("cpu -cc=nocc"))
    monkeypatch.setenv("ANSOR_CACHE", "/proc/none")
    with pytest.raises(CacheError, match="/proc/none cannot be made"):
        check_tools(target)


def test_networks_for_other_devices_are_refused_with_what_to_use() -> None:
    check_loads_here(parse_target("cpu -threads=1"))
    kind = register_kind(Kind("faraway", lambda mcpu: cpu.default(mcpu), cpu.OPTIONS, device="board"))
    target = parse_target("cpu -threads=1")
    target = replace(target, kind=kind.name)
    with pytest.raises(TargetError, match="whose programs run on board, not in this process; tune its kernels"):
        check_loads_here(target)


def test_networks_for_a_core_alone_are_refused_with_what_to_use() -> None:
    with pytest.raises(TargetError, match=r"^asked to compile a network for vta -core=default, .*: use ansor.offload.build \(docs/vta.md\)$"):
        check_loads_here(parse_target("vta"))
