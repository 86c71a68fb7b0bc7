"""A terminal of 80 columns suffices: what commands print there is no wider, and nothing is cut off. Long sentences are wrapped by the terminal."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest

from ansor.cli import _parser, main
from ansor.tasks.task import SearchTask
from ansor.zoo.operators import matmul
from tests.commands.record_files import recorded

COLUMNS = 80
LONG = "a_function_with_a_name_that_is_much_longer_than_what_fits_beside_other_columns"


def on_a_terminal(arguments: Sequence[str], folder: Path, columns: int = COLUMNS) -> list[str]:
    """The lines that a command writes to a terminal, without what sets colours and moves the cursor."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
    environment.pop("COLUMNS", None)
    process = subprocess.Popen([sys.executable, "-m", "ansor", *arguments], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode())
    assert process.wait() == 0, text
    return [line.rpartition("\r")[2] for line in text.replace("\r\n", "\n").splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    recorded(tmp_path / "r.jsonl", SearchTask(matmul, (16, 16, 16), "cpu -threads=1"), SearchTask(matmul, (32, 16, 16), "cpu -threads=1", name=LONG))
    return tmp_path


@pytest.mark.compiler
@pytest.mark.parametrize(
    "command", ["show r.jsonl", "compare r.jsonl r.jsonl", "coverage matmul r.jsonl --args 16,16,16", "targets cpu", "devices", "micro boards"]
)
def test_tables(command: str, folder: Path) -> None:
    lines = on_a_terminal(command.split(), folder)
    table = [line for line in lines if re.search(r"\S  +\S", line)]
    assert table and max(map(len, table)) <= COLUMNS and not any("…" in line for line in lines)


@pytest.mark.compiler
def test_explanations(folder: Path) -> None:
    lines = on_a_terminal(["explain", "r.jsonl", "matmul", "--args", "16,16,16"], folder)
    assert max(map(len, (line for line in lines if not line.startswith("for ")))) <= COLUMNS


def _commands() -> list[str]:
    (found,) = (action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    return ["", *found.choices]


@pytest.mark.parametrize("command", _commands())
def test_help(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    with pytest.raises(SystemExit):
        _parser().parse_args([*command.split(), "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= COLUMNS


def test_a_narrow_terminal_cuts_nothing_off(folder: Path) -> None:
    said = on_a_terminal(["show", "r.jsonl"], folder, 40)
    assert "…" not in "".join(said) and any(line.startswith("name") and "trials" in line for line in said)


def test_a_file_name_is_no_markup(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = folder / "a[red]:smile:é.jsonl"
    odd.write_bytes((folder / "r.jsonl").read_bytes())
    assert main(["show", str(odd)]) == 0
    assert capsys.readouterr().out.startswith(f"{odd}: ")


def test_a_name_that_the_terminal_cannot_show(folder: Path) -> None:
    (folder / "é.jsonl").write_bytes((folder / "r.jsonl").read_bytes())
    for words in (["é.jsonl"], ["é.jsonl", "--json"]):
        run = subprocess.run([sys.executable, "-m", "ansor", "show", *words], cwd=folder, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"})
        assert run.returncode == 0 and not run.stderr
        assert json.loads(run.stdout)["file"] == "é.jsonl" if "--json" in words else run.stdout.startswith(b"\\xe9.jsonl: ")
