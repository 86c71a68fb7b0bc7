"""Processes that run a module of the package import what this process does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ansor.support.own_process import python_command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with files that hide the modules of the package and of Python."""
    (tmp_path / "ansor").mkdir()
    for name in ("ansor/__init__.py", "json.py", "told.py"):
        (tmp_path / name).write_text("raise SystemExit('of the working directory')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_modules_in_the_working_directory_are_not_imported(folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    known = tmp_path_factory.mktemp("known")
    (known / "told.py").write_text("import json, sys, ansor\ndef main():\n    print(json.dumps(sys.argv[1:]), ansor.__file__)\n    return 3\n")
    monkeypatch.setattr(sys, "path", [folder, str(known), *(one for one in sys.path if one)])
    done = subprocess.run(python_command("told", "a b", "ü"), capture_output=True, text=True, timeout=100)
    assert done.returncode == 3 and done.stdout.startswith('["a b", "\\u00fc"] ') and str(folder) not in done.stdout, done.stderr


def test_a_working_directory_in_the_path_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    done = subprocess.run(python_command("told"), capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "of the working directory" in done.stderr
