from __future__ import annotations

import pytest

from ansor.errors import ToolchainError
from ansor.measure.agent.build import SYSTEMS, built_agent, system_named

MACHINES = {"aarch64": 183, "armv7": 40, "riscv64": 243, "x86-64": 62}  # as ELF calls them


@pytest.mark.compiler
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_agent_is_small_and_needs_nothing(system: str) -> None:
    program = built_agent(system).read_bytes()
    assert len(program) <= 40_000
    assert program[:4] == b"\x7fELF" and int.from_bytes(program[18:20], "little") == MACHINES[system]
    assert b"ld-musl" not in program and b".symtab" not in program


@pytest.mark.compiler
def test_it_is_built_once() -> None:
    assert built_agent() == built_agent()


def test_systems_go_by_the_names_that_they_give_themselves() -> None:
    assert [system_named(name) for name in ("x86_64", "arm64", "armv7l", "AARCH64", "riscv64")] == ["x86-64", "aarch64", "armv7", "aarch64", "riscv64"]
    with pytest.raises(ToolchainError, match="asked for an agent for 'mips'; it is built for aarch64, armv7, riscv64, x86-64"):
        system_named("mips")
