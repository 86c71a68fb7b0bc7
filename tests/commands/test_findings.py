"""Lines of `ansor doctor`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansor.cli import main
from ansor.commands.findings import Finding, told
from ansor.support import settings


def test_a_sentence_ends_with_what_to_do() -> None:
    found = told("device", "asked for a board; nothing answers; switch it on", "gdb: ", fix="never said")
    assert found == Finding("device", "gdb: asked for a board; nothing answers", "switch it on", fine=False)
    assert str(found) == "device     gdb: asked for a board; nothing answers; switch it on"


def test_a_sentence_that_does_not_gets_one() -> None:
    assert told("check", "it counted 0", fix="hold the file against the board").fix == "hold the file against the board"
    assert str(told("device", "is it on?", fix="look")) == "device     is it on? look"


def test_what_is_fine_needs_no_mend() -> None:
    assert Finding("cache", "/tmp").fine and str(Finding("cache", "/tmp")) == "cache      /tmp"


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    folder.chmod(0o500)
    try:
        yield
    finally:
        folder.chmod(0o700)


@pytest.mark.compiler
def test_a_compiler_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--threads", "1", "--cc", "no-such-compiler"]) == 1
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("compiler"))
    assert line.startswith("compiler   broken: ") and "; " in line


@pytest.mark.compiler
def test_a_cache_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("ANSOR_CACHE", str(cache))
    settings.cache_directory()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != cache)
    with read_only(cache):
        main(["doctor", "--target", "vta", "--json"])
    assert '"fix": "set ANSOR_CACHE to a permanent, writable folder"' in capsys.readouterr().out
