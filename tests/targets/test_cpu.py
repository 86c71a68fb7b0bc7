"""The C compiler of processors with an operating system."""

from __future__ import annotations

import platform
from dataclasses import replace

import pytest

from ansor.errors import TargetError
from ansor.targets.base import parse_target


def test_a_processor_of_another_architecture_is_refused_before_a_compiler_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(TargetError, match="an ARM processor, but this machine is x86-64"):
        parse_target("cpu -mcpu=cortex-a72 -cc=nocc").toolchain()


@pytest.mark.compiler
def test_the_processor_is_the_targets() -> None:
    assert parse_target("cpu -threads=1").toolchain().version


@pytest.mark.compiler
def test_a_name_of_a_kind_of_ones_own_is_of_no_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert replace(parse_target("cpu -threads=1"), mcpu="mine").toolchain().version
