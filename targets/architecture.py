"""The architecture of a processor, by its name, and of this machine."""

from __future__ import annotations

import platform

ARM = ("cortex-", "neoverse-", "apple-")
"""Prefixes of the names of ARM processors; all other processors of `cpu` are x86-64."""

NAMES = {"x86_64": "x86-64", "amd64": "x86-64", "aarch64": "ARM", "arm64": "ARM"}
"""The names that systems report."""


def architecture_of(mcpu: str) -> str:
    """`x86-64` or `ARM` for a processor of the kind `cpu`; '' for this machine's own."""
    if mcpu == "native":
        return ""
    return "ARM" if mcpu.replace("_", "-").startswith(ARM) else "x86-64"


def architecture_here() -> str:
    """This machine's architecture, by the same names; any other by the system's name."""
    name = platform.machine().lower()
    return NAMES.get(name, name)
