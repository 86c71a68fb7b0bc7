"""A few kills of a tuning run; `benchmarks/kill.py` does twenty."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[1] / "benchmarks" / "kill.py"


@pytest.mark.compiler
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts processes in /proc")
def test_killed_runs_lose_nothing_and_go_on() -> None:
    command = [sys.executable, str(BENCHMARK), "--kills", "3", "--trials", "20", "--longest", "3"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
