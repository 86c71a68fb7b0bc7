"""The numbers of a machine: threads, vectors, caches and memories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansor.schedule.scopes import INSIDE, WHOLE


@dataclass(frozen=True)
class Caches:
    """Bytes of a core's first and second cache and of the shared third, 0 = none; line_bytes: of a cache line."""

    l1_bytes: int
    l2_bytes: int = 0
    l3_bytes: int = 0
    line_bytes: int = 64

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of each, from first to third."""
        return self.l1_bytes, self.l2_bytes, self.l3_bytes


@dataclass(frozen=True)
class Memory:
    """Bytes that programs may use.

    stack_bytes: for a kernel's local buffers of one thread. workspace_bytes: for whole intermediates, 0 = unlimited.
    others: further memories for stages, as (scope, bytes). code: the memory of programs, if there is a choice. measured: a program is measured there
    alone, with its arguments and the harness; else it is part of a network.
    """

    stack_bytes: int = 512 * 1024
    workspace_bytes: int = 0
    others: tuple[tuple[str, int], ...] = ()
    code: str = ""
    measured: bool = True

    @property
    def capacities(self) -> Mapping[str, int]:
        """The capacity of each memory in bytes, by scope; missing ones are unlimited."""
        workspace = {WHOLE: self.workspace_bytes} if self.workspace_bytes else {}
        return {INSIDE: self.stack_bytes, **workspace, **dict(self.others)}


@dataclass(frozen=True)
class Hardware:
    """A machine as programs see it.

    threads: how many run a kernel. vector_bytes, vector_registers: of one core; a machine without vectors has vectors of one element.
    vector_group: registers per vector. Twice as many vectors of half the size fit, and so on down to one register.
    features: the processor's instructions beyond arithmetic that intrinsics need, by compilers' names.
    """

    threads: int
    vector_bytes: int
    vector_registers: int
    caches: Caches
    memory: Memory = Memory()
    features: frozenset[str] = frozenset()
    vector_group: int = 1
