"""SIGTERM ends a run as Ctrl-C does: what it has begun is put away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ansor.support.termination import Terminated, termination

PROGRAM = """
import sys, time
from ansor.measure.work_directory import WorkDirectory
from ansor.support.termination import termination
with termination():
    work = WorkDirectory()
    print(work.path, flush=True)
    time.sleep(60)
"""


def test_work_folders_go_with_a_process_that_is_ended(tmp_path: Path) -> None:
    environment = {**os.environ, "ANSOR_CACHE": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        assert path.is_dir()
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    assert not path.exists()


def test_the_handler_is_there_for_as_long_as_it_is_wanted() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Terminated), termination():
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    assert signal.getsignal(signal.SIGTERM) is before
