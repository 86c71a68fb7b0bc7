"""Compilers of the system that build the C we hand out, as strict as people set them."""

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
"""Programs, and Debian's packages of them; clang's sanitizers are one of their own."""


@cache
def _found(name: str) -> bool:
    if not shutil.which(name):
        install(*COMPILERS[name])
    return shutil.which(name) is not None


def need_compiler(name: str) -> str:
    """The program; a test is skipped where it is missing, and fails where everything is tested."""
    if not _found(name):
        if os.environ.get("CI") == "true":
            pytest.fail(f"not installed: {name}")
        pytest.skip(f"not installed: {name}")
    return name


def complaints(command: Sequence[str], texts: Sequence[str], folder: Path) -> str:
    """What a compiler says of C texts, each made an object in one call of it."""
    names = [f"text{number}.c" for number in range(len(texts))]
    for name, text in zip(names, texts, strict=True):
        (folder / name).write_text(text)
    done = subprocess.run([*command, "-c", *names], cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    return done.stderr or ("" if done.returncode == 0 else f"ended with code {done.returncode}")
