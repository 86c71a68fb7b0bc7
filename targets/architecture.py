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


def foreign(target: str, mcpu: str) -> str:
    """Why programs of a target for this machine cannot be built and run here, as an error; '' if its processor is of this machine's architecture."""
    wanted, here = architecture_of(mcpu), architecture_here()
    if wanted in ("", here):
        return ""
    cure = f"; leave -mcpu out, or name a processor of this architecture{f', or cross-compile: arm -mcpu={mcpu}' if wanted == 'ARM' else ''}"
    article = "an" if wanted[0] in "aAxX" else "a"
    return f"asked for target {target}, {article} {wanted} processor, but this machine is {here}, and kernels are built and run where ansor runs{cure}"


def architecture_here() -> str:
    """This machine's architecture, by the same names; any other by the system's name."""
    name = platform.machine().lower()
    return NAMES.get(name, name)
