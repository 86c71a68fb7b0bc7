"""The state of the files changes with any of them, and with nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansor.support import package_state as module


def test_all_packages_are_found() -> None:
    folders = module._folders()
    assert {folder.name for folder in folders} >= {"ansor", "rules", "cost_model", "measure", "targets"}
    assert (folders[0] / "api.py").exists()


def test_it_changes_with_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_folders", lambda: [tmp_path])
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "notes.txt").write_text("1")

    def state() -> str:
        module.package_state.cache_clear()
        return module.package_state()

    first = state()
    (tmp_path / "notes.txt").write_text("22")
    assert state() == first
    os.utime(tmp_path / "a.py", ns=(1, 1))
    second = state()
    (tmp_path / "b.c").write_text("")
    third = state()
    assert len({first, second, third}) == 3
    (tmp_path / ".#a.py").symlink_to("somebody@somewhere.1")  # an editor has it open
    assert state() == third
    module.package_state.cache_clear()


def test_folders_that_cannot_be_read_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.py").write_text("1")
    scandir = os.scandir

    def listed(folder: str) -> Iterator[os.DirEntry[str]]:
        if folder.endswith("closed"):
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", listed)
    assert [path for path, _, _ in module._states(str(tmp_path))] == [str(tmp_path / "a.py")]
