"""What a machine has, as numbers: threads, vectors, caches and memories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansor.schedule.scopes import INSIDE, WHOLE


@dataclass(frozen=True)
class Caches:
    """Bytes of the first and second cache of a core and of the third, which is shared, 0 = there is none; line_bytes: of a cache line."""

    l1_bytes: int
    l2_bytes: int = 0
    l3_bytes: int = 0
    line_bytes: int = 64

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Bytes of each, the first one first."""
        return self.l1_bytes, self.l2_bytes, self.l3_bytes


@dataclass(frozen=True)
class Memory:
    """Bytes that programs may use.

    stack_bytes: how much a kernel may keep in local buffers of one thread. workspace_bytes: in whole intermediates, 0 = as much as there is.
    others: further memories that stages may be kept in, as (scope, bytes). code: the one that programs are in, where there is a choice.
    """

    stack_bytes: int = 512 * 1024
    workspace_bytes: int = 0
    others: tuple[tuple[str, int], ...] = ()
    code: str = ""

    @property
    def capacities(self) -> Mapping[str, int]:
        """Bytes that each memory holds, by its scope; those that are not here have no limit."""
        workspace = {WHOLE: self.workspace_bytes} if self.workspace_bytes else {}
        return {INSIDE: self.stack_bytes, **workspace, **dict(self.others)}


@dataclass(frozen=True)
class Hardware:
    """A machine as programs see it.

    threads: how many run a kernel. vector_bytes, vector_registers: of one core; a machine without vectors has those of one number.
    vector_group: registers of which one such vector is made. Of vectors of `vector_bytes / 2` there is room for twice as many, and so on down to one register.
    features: instructions beyond arithmetic that the processor has, of those that intrinsics need, as compilers name them.
    """

    threads: int
    vector_bytes: int
    vector_registers: int
    caches: Caches
    memory: Memory = Memory()
    features: frozenset[str] = frozenset()
    vector_group: int = 1
