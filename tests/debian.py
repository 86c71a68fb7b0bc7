"""Programs that tests need and a bare machine lacks: installed from the system's packages, where this machine lets us."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

SECONDS = 240
_LOCK = Path(tempfile.gettempdir()) / "ansor-tests-apt.lock"


def install(*packages: str) -> None:
    """Try to; whoever asks looks afterwards whether they are there. Workers take turns: one that finds another at it would go without."""
    steps = (("apt-get", "update", "-qq"), ("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages))
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for step in steps:
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run(step, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=True, env=quiet)
