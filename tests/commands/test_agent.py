"""`ansor agent`, with an `ssh` that runs commands here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ansor.cli import main
from ansor.measure.agent.address import read_address
from ansor.measure.agent.build import SYSTEMS
from ansor.measure.agent.wire import LinkLost

SSH = """#!/bin/sh
# ssh -o ... [-p PORT] -- HOST COMMAND
while [ "$1" != -- ]; do echo "$1" >> "$HOME/../options"; shift; done
shift
[ "$1" = "pi@board" ] || { echo "ssh: no route to $1" >&2; exit 255; }
cd "$HOME" && exec sh -c "$2"
"""


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder on the other side."""
    for name in ("bin", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin" / "ssh").write_text(SSH)
    (tmp_path / "bin" / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("ANSOR_CACHE", os.environ.get("ANSOR_CACHE") or str(Path.home() / ".cache" / "ansor"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / "home"


@pytest.mark.compiler
def test_push_puts_an_agent_where_the_device_starts_it(board: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "push", "pi@board:2222"]) == 0
    assert "in .ansor/agent: measure there with --devices ssh://pi@board:2222\n" in capsys.readouterr().out
    assert [path.name for path in (board / ".ansor").iterdir()] == ["agent"] and (board / ".ansor" / "agent").stat().st_mode & 0o777 == 0o755
    client = read_address("ssh://pi@board:2222").connect()
    assert client.about["machine"] == os.uname().machine
    client.close()
    assert {"BatchMode=yes", "-p", "2222"} <= set((board.parent / "options").read_text().split())


@pytest.mark.compiler
def test_push_to_another_place(board: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = board / "a folder" / "agent"
    assert main(["agent", "push", "pi@board", "--path", str(place)]) == 0
    client = read_address(f"ssh://pi@board{place}").connect()
    client.close()
    assert capsys.readouterr().out.endswith(f"--devices ssh://pi@board{place}\n")


def test_a_board_that_is_not_there(board: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del board
    assert main(["agent", "push", "nobody"]) == 1
    assert capsys.readouterr().err == "ansor: asked to reach nobody: ssh: no route to nobody; `ssh nobody` must work without a password\n"
    with pytest.raises(LinkLost, match="no route to other"):
        read_address("ssh://other").connect()


@pytest.mark.compiler
def test_build_writes_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "build", "arm64", "--output", str(tmp_path / "agent")]) == 0
    assert (tmp_path / "agent").read_bytes()[:4] == b"\x7fELF" and os.access(tmp_path / "agent", os.X_OK)
    assert "bytes, needs only Linux" in capsys.readouterr().out
    assert main(["agent", "build", "mips"]) == 1
    assert capsys.readouterr().err == f"ansor: asked for an agent for 'mips'; it is built for {', '.join(SYSTEMS)} (Linux)\n"


@pytest.mark.compiler
def test_serve_makes_a_key_and_listens(tmp_path: Path) -> None:
    key = tmp_path / "keys" / "agent.key"
    command = [sys.executable, "-m", "ansor", "agent", "serve", "--listen", "127.0.0.1:0", "--key", str(key), "--store", str(tmp_path / "store"), "--wait", "3"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(3)]
    assert said[0].startswith(f"created a key: {key}; copy it") and "agent://127.0.0.1:PORT" in said[1] and said[2].startswith("listening on port ")
    client = read_address(f"agent://127.0.0.1:{said[2].split()[-1]}?key={key}").connect()
    assert client.about["machine"] == os.uname().machine
    client.close()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    process.stdout.close()
