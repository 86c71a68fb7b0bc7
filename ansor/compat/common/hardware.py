"""Reads hardware parameters from a target's text in TVM's terms."""

from __future__ import annotations

import re
from dataclasses import InitVar, dataclass, fields

from ansor.support import settings

LARGEST = 2**31 - 1
"""TVM's value for "unlimited"."""

PROCESSOR_KINDS = ("llvm", "c")
"""Kinds of targets that are processors."""

_UNSAID = -(1 << 40)


@dataclass(frozen=True)
class HardwareParams:
    """The machine as the search sees it; sizes in bytes, 0 and -1 if unknown. Values that are not given come from `target`."""

    num_cores: int = _UNSAID
    vector_unit_bytes: int = _UNSAID
    cache_line_bytes: int = _UNSAID
    max_shared_memory_per_block: int = _UNSAID
    max_local_memory_per_block: int = _UNSAID
    max_threads_per_block: int = _UNSAID
    max_vthread_extent: int = _UNSAID
    warp_size: int = _UNSAID
    target: InitVar[str] = "llvm"
    target_host: InitVar[str | None] = None

    def __post_init__(self, target: str, target_host: str | None) -> None:
        cpu = kind_of_target(target) in PROCESSOR_KINDS
        known = (settings.cores(), 64, 64, 0, 0, 0, 0, 0) if cpu else (-1, 16, 64, 0, LARGEST, 0, 0, 0)
        for one, value in zip(fields(self), known, strict=True):
            if getattr(self, one.name) == _UNSAID:
                object.__setattr__(self, one.name, value)


def kind_of_target(target: str) -> str:
    """The first word of a target's text, or the "kind" in a JSON text; empty if there is none. `cpu`, our name for it, becomes `llvm`."""
    found = re.search(r'"kind"\s*:\s*"([^"]*)"', target) if target.lstrip().startswith("{") else re.match(r"\s*(\S+)", target)
    kind = found[1] if found else ""
    return "llvm" if kind == "cpu" else kind
