"""Which processors run the same programs: what a processor's name says, and what this machine is."""

from __future__ import annotations

import platform

ARM = ("cortex-", "neoverse-", "apple-")
"""How the names of ARM processors begin; all others that `cpu` knows are x86-64."""

NAMES = {"x86_64": "x86-64", "amd64": "x86-64", "aarch64": "ARM", "arm64": "ARM"}
"""What systems call them."""


def architecture_of(mcpu: str) -> str:
    """`x86-64` or `ARM`, of a processor of the kind `cpu`; '' for this machine's own."""
    if mcpu == "native":
        return ""
    return "ARM" if mcpu.replace("_", "-").startswith(ARM) else "x86-64"


def architecture_here() -> str:
    """This machine's, by the same names; as the system says where it is another."""
    name = platform.machine().lower()
    return NAMES.get(name, name)
