"""Architectures of processors."""

from __future__ import annotations

import platform

import pytest

from ansor.targets.architecture import architecture_here, architecture_of, foreign
from ansor.targets.arm import ARM, ARMV7


def test_names_of_processors() -> None:
    known = {name for name in (*ARM, *ARMV7) if name != "a64fx"}
    assert {architecture_of(name) for name in known} == {"ARM"} and architecture_of("cortex_a72") == "ARM"
    assert [architecture_of(name) for name in ("native", "x86-64-v3", "znver4")] == ["", "x86-64", "x86-64"]


@pytest.mark.parametrize(("said", "name"), [("x86_64", "x86-64"), ("AMD64", "x86-64"), ("arm64", "ARM"), ("riscv64", "riscv64")])
def test_this_machine(said: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: said)
    assert architecture_here() == name


def test_a_processor_of_another_architecture_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    said = foreign("cpu -mcpu=cortex-a72 -threads=1", "cortex-a72")
    assert said.startswith("asked for target cpu -mcpu=cortex-a72 -threads=1, an ARM processor, but this machine is x86-64")
    assert said.endswith("or cross-compile: arm -mcpu=cortex-a72")
    assert foreign("cpu", "native") == foreign("cpu -mcpu=znver4", "znver4") == ""
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert foreign("cpu -mcpu=znver4", "znver4").endswith("leave -mcpu out, or name a processor of this architecture")
