"""Where, when and with which version something was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ansor.codegen.toolchain import processor_name
from ansor.cost_model.pretrained import package_version
from ansor.measure.machine_identity import processor_identity

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Measured:
    """The origin of a figure. commit: of this package, with a + if code had changes; date: in ISO format; model: a digest of the package's model."""

    commit: str
    machine: str
    date: str
    model: str

    def __str__(self) -> str:
        return f"measured at commit {self.commit} on {self.machine}, {self.date}, model {self.model}"


def here() -> Measured:
    """The origin of a figure that is measured now."""
    kind = processor_identity().partition(", ")[0]  # a virtual machine's name says little
    return Measured(commit(), f"{processor_name()} ({kind}), {os.cpu_count()} cores, {platform.system()}", date.today().isoformat(), package_version())


def commit() -> str:
    """The commit that is checked out; "unknown" without a git history. Changes to pages are ignored, because figures are written there."""
    try:
        name = _git("rev-parse", "--short=7", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs", ":!*.md")
        return f"{name}+" if changed else name
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
