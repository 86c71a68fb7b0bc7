"""A browser without a window, for pages from disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.debian import install

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-dev-shm-usage", "--enable-logging=stderr", "--hide-scrollbars",
)  # fmt: skip
SECONDS = 120


@dataclass(frozen=True)
class Shown:
    """A page after it was loaded: its elements as text, and its console output."""

    dom: str
    console: tuple[str, ...]


@cache
def _chromium() -> str | None:
    if shutil.which("chromium") is None:
        install("chromium")
    return shutil.which("chromium")


def browser() -> str:
    """The program; the test is skipped if it is missing and cannot be installed."""
    found = _chromium()
    if found is None:
        pytest.skip("chromium is not there, and cannot be installed")
    return found


def show(page: Path, width: int = 1600, height: int = 1200) -> Shown:
    """Load a page from disk in a window of that size."""
    run = _run(page, width, height, "--dump-dom")
    return Shown(run.stdout, tuple(line for line in run.stderr.splitlines() if ":CONSOLE" in line))


def picture(page: Path, to: Path, width: int, dark: bool, height: int = 1200) -> bytes:
    """A screenshot of a page, as PNG."""
    _run(page, width, height, f"--screenshot={to}", f"--blink-settings=preferredColorScheme={0 if dark else 1}")
    return to.read_bytes()


def _run(page: Path, width: int, height: int, *flags: str) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory(prefix="ansor-chromium-", ignore_cleanup_errors=True) as profile:
        command = [browser(), *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}", *flags, page.resolve().as_uri()]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True, env={**os.environ, "LANG": "C.UTF-8"})
