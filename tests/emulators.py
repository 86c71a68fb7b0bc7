"""Emulators that tests need, installed if they are missing and this machine permits it."""

from __future__ import annotations

import os
import shutil
from functools import cache

import pytest

from ansor.measure.devices.qemu import missing
from tests.debian import install


@cache
def lacking() -> str:
    """What is still missing after an attempt to install it; '' if nothing is."""
    if missing("aarch64"):
        install("qemu-user")
    return missing("aarch64")


MICRO = {"qemu-system-arm": "qemu-system-arm", "qemu-system-riscv64": "qemu-system-misc", "openocd": "openocd", "dtc": "device-tree-compiler"}
"""Simulators of boards without an operating system, and their Debian packages."""


@cache
def lacking_micro() -> tuple[str, ...]:
    """Programs that are missing after an attempt to install them."""
    packages = sorted({package for program, package in MICRO.items() if not shutil.which(program)})
    if packages:
        install(*packages)
    return tuple(program for program in MICRO if not shutil.which(program))


def need_micro() -> None:
    """Skip a test if simulators of boards are missing; fail it in CI."""
    if said := lacking_micro():
        text = f"not installed: {', '.join(said)}"
        if os.environ.get("CI") == "true":
            pytest.fail(text)
        pytest.skip(text)


def need_emulators() -> None:
    """Skip a test if they are missing; fail it in CI."""
    if said := lacking():
        pytest.fail(said) if os.environ.get("CI") == "true" else pytest.skip(said)
