"""Boards behind `ssh`: a real one, to a real sshd on this machine."""

from __future__ import annotations

import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansor.api import tune_tasks
from ansor.cli import main
from ansor.errors import DeviceError
from ansor.measure.agent.address import read_address
from ansor.measure.devices import agent as devices
from ansor.measure.record import load
from tests.measure.agent.board import TIMING, TRIALS, Seen, begun, front, send, task, until
from tests.measure.agent.sshd import Sshd, sshd
from tests.measure.agent.test_faults import meanwhile

pytestmark = pytest.mark.compiler


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a short name, as agents need one for their files."""
    made = Path(tempfile.mkdtemp(prefix="ansor-sshd-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    with sshd(folder) as running:
        monkeypatch.setenv("ANSOR_SSH", f"ssh -F {running.config}")
        yield running


def test_an_agent_is_pushed_and_tunes(server: Sshd, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, records = folder / "pushed" / "agent", folder / "records.jsonl"
    assert main(["agent", "push", "board", "--path", str(place)]) == 0
    assert capsys.readouterr().out.endswith(f"measure there with --devices ssh://board{place}\n")
    (state,) = tune_tasks([task()], trials=TRIALS, devices=f"ssh://board{place}", records=records, timing=TIMING)
    assert state.best is not None and state.trials == len(load(records).records) == TRIALS and not state.failures
    left = [path.name[:5] for path in next(folder.glob("ansor-agent-*")).iterdir()]
    assert set(left) == {"file-", "lock"}, "no outputs and no folders of jobs stay"
    until(lambda: not server.connections(), "the connection ends with the run")


def test_a_user_and_a_port_in_the_address(server: Sshd, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a configuration, by options."""
    options = ["ssh", "-F", "none", "-i", f"{folder}/user", "-o", f"UserKnownHostsFile={folder}/known"]
    monkeypatch.setenv("ANSOR_SSH", shlex.join(options))
    with pytest.raises(DeviceError, match="no agent answers there .*nowhere/agent"):
        Seen(read_address(f"ssh://127.0.0.1:{server.port}/nowhere/agent")).model  # noqa: B018, it asks


def test_a_connection_that_breaks_in_the_middle_of_a_job(server: Sshd, folder: Path, agent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "PAUSE_SECONDS", 0.05)
    started, records = folder / "started", folder / "records.jsonl"
    started.write_text(f"#!/bin/sh\nexec {agent} -with {front(folder, 3)}\n")
    started.chmod(0o755)

    def broken() -> None:
        until((folder / "held").exists, "a trial is held")
        send(signal.SIGKILL, server.connections())

    device = Seen(read_address(f"ssh://board{started}"))
    with meanwhile(broken):
        (state,) = tune_tasks([task()], trials=TRIALS, devices=device, records=records, timing=TIMING)
    device.close()
    assert device.failures == ["link_lost"] and begun(folder)[-2:] == [1, 2]
    assert state.trials == len(load(records).records) == TRIALS and not state.failures
