"""Installs programs that tests need from the system's packages, if this machine permits it."""

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
    """Try to install them; the caller checks afterwards whether they are there. Only one worker installs at a time: a second one would fail."""
    steps = (("apt-get", "update", "-qq"), ("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages))
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for step in steps:
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run(step, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=True, env=quiet)
