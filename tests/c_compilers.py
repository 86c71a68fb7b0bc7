"""System compilers that build the C which we generate, with strict warnings as users set them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.debian import install

STRICT = ("-Wall", "-Wextra", "-Werror")
COMPILERS = {"gcc": ("gcc", "libc6-dev"), "clang": ("clang", "libclang-rt-dev", "libc6-dev")}
"""Programs, and their Debian packages; clang's sanitizers have a package of their own."""


@cache
def _found(name: str) -> bool:
    if not shutil.which(name):
        install(*COMPILERS[name])
    return shutil.which(name) is not None


def need_compiler(name: str) -> str:
    """The program. If it is missing, the test is skipped, or fails in CI."""
    if not _found(name):
        if os.environ.get("CI") == "true":
            pytest.fail(f"not installed: {name}")
        pytest.skip(f"not installed: {name}")
    return name


def complaints(command: Sequence[str], texts: Sequence[str], folder: Path) -> str:
    """A compiler's output for C texts, which one call compiles to objects."""
    names = [f"text{number}.c" for number in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        (folder / name).write_text(text)
    done = subprocess.run([*command, "-c", *names], cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    return done.stderr or ("" if done.returncode == 0 else f"ended with code {done.returncode}")
