"""Records are of a processor and of major.minor of a compiler; files of older versions are compared by what they say."""

from __future__ import annotations

import pytest

from ansor.codegen.toolchain import Compiler, processor_name
from ansor.measure.machine_identity import processor_identity
from ansor.measure.record_target import is_of, record_target
from ansor.targets.base import parse_target

NATIVE, NAMED = parse_target("cpu -threads=1"), parse_target("cpu -mcpu=x86-64-v3 -threads=1")


@pytest.fixture(autouse=True)
def zig(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansor.targets.cpu.find_compiler", lambda command: Compiler("zig", ("zig", "cc"), "zig cc 0.17.1"))


def test_the_text_names_processor_and_compiler() -> None:
    assert record_target(NATIVE) == f"{NATIVE} ({processor_identity()}, zig cc 0.17)" and record_target(NAMED) == f"{NAMED} (zig cc 0.17)"
    assert is_of(record_target(NATIVE), NATIVE) and is_of(record_target(NAMED), NAMED)
    assert not is_of(record_target(NATIVE), NAMED) and not is_of(record_target(NATIVE), parse_target("cpu -threads=2"))


@pytest.mark.parametrize(("version", "same"), [("0.17.1", True), ("0.17.0", True), ("0.17", True), ("0.16.1", False), ("0.18.0", False), ("1.17.1", False)])
def test_the_patch_version_does_not_matter(version: str, same: bool) -> None:
    assert is_of(f"{NAMED} (zig cc {version})", NAMED) is same
    assert is_of(f"{NATIVE} ({processor_name()}, zig cc {version})", NATIVE) is same, "as older versions wrote it"


def test_other_processors_compilers_and_logs_are_others() -> None:
    for text in (
        f"{NATIVE} (another {processor_name()}, zig cc 0.17.1)", f"{NATIVE} ({processor_name()}, gcc (Debian) 0.17.1)", f"{NATIVE}", f"{NATIVE} (",
        f"{NATIVE} ({processor_name()}, logged: llvm 0.17)", f"{NATIVE} (zig cc 0.17.1)", "",
    ):  # fmt: skip
        assert not is_of(text, NATIVE)
    assert not is_of(f"{NAMED} (logged: zig 0.17)", NAMED)
