from __future__ import annotations

from pathlib import Path

import pytest

from ansor.codegen import toolchain
from ansor.run.early_libraries import build_early
from ansor.support.settings import cache_part

pytestmark = pytest.mark.compiler


def test_libraries_are_built_before_they_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "zig").symlink_to(cache_part("zig"))
    monkeypatch.setenv("ANSOR_CACHE", str(tmp_path))
    build_early().join()
    assert {"tape", "network"} <= {one.name.partition("-")[0] for one in tmp_path.glob("libraries/*")}


def test_a_compiler_that_does_not_work_is_left_to_whoever_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    toolchain._find.cache_clear()
    thread = build_early()
    thread.join()
    assert not thread.is_alive()
