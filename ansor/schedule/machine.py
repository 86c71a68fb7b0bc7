"""What scheduling asks of a machine. Targets have these fields and more."""

from __future__ import annotations

from typing import Protocol


class Machine(Protocol):
    """Threads, the vector unit of one core, and how much a kernel may keep in local buffers."""

    @property
    def threads(self) -> int: ...
    @property
    def vector_bytes(self) -> int: ...
    @property
    def vector_registers(self) -> int: ...
    @property
    def stack_bytes(self) -> int: ...
