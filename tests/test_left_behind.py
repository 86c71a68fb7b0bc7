"""Whatever ends a test run, nothing that it started goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansor.measure.agent.build import built_agent
from tests.left_behind import MARK, marked

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 20.0
RUN = """
import os, sys, time
from pathlib import Path
sys.path.append(sys.argv[1])
from ansor.measure.device_kinds import open_devices
from ansor.targets.base import parse_target
from tests.farm_cluster import Cluster
from tests.left_behind import MARK, watch
watch()
cluster = Cluster(Path(sys.argv[2]))
cluster.worker("board", f"agent-stdio:{sys.argv[3]} -store {sys.argv[2]}/store")
(device,) = open_devices([f"farm://{cluster.url}?key=board&slots=1"], parse_target("cpu -threads=1"), print)
print(os.environ[MARK], flush=True)
time.sleep(1000)
"""
"""A run with a farm whose device is an agent."""


def words_of(process: int) -> str:
    """The command of a process, '' for one that has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


@pytest.mark.compiler
def test_a_farm_ends_with_the_run_that_started_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, str(ROOT), str(tmp_path / "farm"), str(built_agent())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout is not None
            mark = run.stdout.readline().strip()
            started = sorted(map(words_of, marked(mark)))
            kinds = ("farm scheduler", "farm worker", "--supervised", "/agent-")  # both workers name the agent, which has two processes
            assert [sum(kind in words for words in started) for kind in kinds] == [1, 2, 1, 4], started
        finally:
            os.kill(run.pid, signal.SIGKILL)
    deadline = time.monotonic() + SECONDS
    while left := marked(mark):
        assert time.monotonic() < deadline, list(map(words_of, left))
        time.sleep(0.05)


def test_this_run_is_watched() -> None:
    """By a process that has no mark, as it goes on when all that have one are killed."""
    mark = os.environ[MARK]
    watching = [folder for folder in Path("/proc").iterdir() if folder.name.isdigit() and words_of(int(folder.name)).endswith(f" {os.getpid()} {mark} ")]
    assert len(watching) == 1 and int(watching[0].name) not in marked(mark)
