"""Emulators that tests need: installed where they are missing, and this machine lets us."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache

import pytest

from ansor.measure.devices.qemu import missing

SECONDS = 240
STEPS = (("apt-get", "update", "-qq"), ("apt-get", "install", "-y", "-qq", "--no-install-recommends", "qemu-user"))


@cache
def lacking() -> str:
    """What is missing after an attempt to install it; '' for nothing."""
    for step in STEPS if missing("aarch64") and os.geteuid() == 0 and shutil.which("apt-get") else ():
        try:
            quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run(step, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=True, env=quiet)
        except (OSError, subprocess.SubprocessError):
            break
    return missing("aarch64")


def need_emulators() -> None:
    """Skips a test where there are none."""
    if said := lacking():
        pytest.skip(said)
