"""A worker by itself: what it says while it cannot join, and that it ends if its process hangs."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from ansor.farm import worker
from ansor.farm.worker import AGAIN, _once

HANGS = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open(sys.argv[1], 'w').close(); time.sleep(600)"


def test_why_it_cannot_join_is_told_once_until_it_has_joined() -> None:
    said: list[str] = []
    tell = _once(said.append)
    for text in (f"refused{AGAIN}", f"silent{AGAIN}", f"refused{AGAIN}", "local serves x", f"refused{AGAIN}", f"refused{AGAIN}", "local serves x"):
        tell(text)
    assert said == [f"refused{AGAIN}", f"silent{AGAIN}", "local serves x", f"refused{AGAIN}", "local serves x"]


@pytest.mark.parametrize(("seconds", "times"), [(0.5, 1), (600.0, 2)])
def test_a_process_that_hangs_is_killed_when_it_is_told_to_end_twice_or_does_not_end_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, times: int
) -> None:
    monkeypatch.setattr(worker, "ENDING_SECONDS", seconds)
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
    assert worker.supervise(["-c", HANGS, str(ready)], lambda text: None) == 130
    assert time.monotonic() - began < 300
    telling.join()
