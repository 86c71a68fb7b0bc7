"""The process that runs a worker in another one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ansor.farm import supervisor

HANGS = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open(sys.argv[1], 'w').close(); time.sleep(600)"
SLEEPS = "import signal, time; signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM]); time.sleep(600)"
TOLD_MEANWHILE = """
import os, signal, subprocess, sys
from ansor.farm.supervisor import supervise

def told(command, start=subprocess.Popen):
    process = start(command)
    open(sys.argv[3], "w").write(str(process.pid))
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    return process

subprocess.Popen = told
sys.exit(supervise(["-c", sys.argv[2]], print))
"""
FAILS = "import os, sys; file = open(sys.argv[1], 'a'); file.write('x'); file.close(); sys.exit(7 if os.path.getsize(sys.argv[1]) < 3 else 143)"


@pytest.mark.parametrize(("seconds", "times"), [(0.5, 1), (600.0, 2)])
def test_a_process_that_hangs_is_killed_when_it_is_told_to_end_twice_or_does_not_end_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, times: int
) -> None:
    monkeypatch.setattr(supervisor, "ENDING_SECONDS", seconds)
    ready = tmp_path / "ready"

    def tell() -> None:
        while not ready.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        if times == 2:
            time.sleep(3)
            os.kill(os.getpid(), signal.SIGTERM)

    telling = threading.Thread(target=tell, daemon=True)
    telling.start()
    began = time.monotonic()
    assert supervisor.supervise(["-c", HANGS, str(ready)], lambda text: None) == 130
    assert time.monotonic() - began < 300
    telling.join()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_while_the_process_starts_ends_it(tmp_path: Path, name: str) -> None:
    ran = subprocess.run([sys.executable, "-c", TOLD_MEANWHILE, name, SLEEPS, str(tmp_path / "started")], timeout=100, check=False)
    assert ran.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "started").read_text()), 0)


def test_a_process_that_ends_by_itself_is_started_again_until_it_was_told_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "AGAIN_SECONDS", 0.0)
    said: list[str] = []
    assert supervisor.supervise(["-c", FAILS, str(tmp_path / "starts")], said.append) == 143
    assert (tmp_path / "starts").read_text() == "xxx"
    assert said == ["the worker ended with status 7; restarting it"] * 2
