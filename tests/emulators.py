"""Emulators that tests need: installed where they are missing, and this machine lets us."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
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


MICRO = {"qemu-system-arm": "qemu-system-arm", "qemu-system-riscv64": "qemu-system-misc", "openocd": "openocd", "dtc": "device-tree-compiler"}
"""Programs for boards without an operating system, and Debian's packages of them."""


@cache
def lacking_micro() -> tuple[str, ...]:
    """Programs that are missing after an attempt to install them."""
    packages = sorted({package for program, package in MICRO.items() if not shutil.which(program)})
    if packages and os.geteuid() == 0 and shutil.which("apt-get"):
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (STEPS[0], ("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)):
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run(step, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=True, env=quiet)
    return tuple(program for program in MICRO if not shutil.which(program))


def need_micro() -> None:
    """Skips a test where simulators of boards are missing; fails where everything is tested."""
    if said := lacking_micro():
        text = f"not installed: {', '.join(said)}"
        if os.environ.get("CI") == "true":
            pytest.fail(text)
        pytest.skip(text)


def need_emulators() -> None:
    """Skips a test where there are none."""
    if said := lacking():
        pytest.skip(said)
