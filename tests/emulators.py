"""Emulators that tests need: installed where they are missing, and this machine lets us."""

from __future__ import annotations

import os
import shutil
from functools import cache

import pytest

from ansor.measure.devices.qemu import missing
from tests.debian import install


@cache
def lacking() -> str:
    """What is missing after an attempt to install it; '' for nothing."""
    if missing("aarch64"):
        install("qemu-user")
    return missing("aarch64")


MICRO = {"qemu-system-arm": "qemu-system-arm", "qemu-system-riscv64": "qemu-system-misc", "openocd": "openocd", "dtc": "device-tree-compiler"}
"""Programs for boards without an operating system, and Debian's packages of them."""


@cache
def lacking_micro() -> tuple[str, ...]:
    """Programs that are missing after an attempt to install them."""
    packages = sorted({package for program, package in MICRO.items() if not shutil.which(program)})
    if packages:
        install(*packages)
    return tuple(program for program in MICRO if not shutil.which(program))


def need_micro() -> None:
    """Skips a test where simulators of boards are missing; fails where everything is tested."""
    if said := lacking_micro():
        text = f"not installed: {', '.join(said)}"
        if os.environ.get("CI") == "true":
            pytest.fail(text)
        pytest.skip(text)


def need_emulators() -> None:
    """Skips a test where there are none; fails where everything is tested."""
    if said := lacking():
        pytest.fail(said) if os.environ.get("CI") == "true" else pytest.skip(said)
