"""Programs that tests need and a bare machine lacks: installed from the system's packages, where this machine lets us."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress

SECONDS = 240


def install(*packages: str) -> None:
    """Try to; whoever asks looks afterwards whether they are there."""
    steps = (("apt-get", "update", "-qq"), ("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages))
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in steps if os.geteuid() == 0 and shutil.which("apt-get") else ():
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(step, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=True, env=quiet)
