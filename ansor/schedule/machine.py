"""What scheduling needs to know about a machine, and limits: named tests of whether a program is worth building. Targets have these fields and more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ansor.ir.columns import Flag
from ansor.ir.loops import Loops


class Machine(Protocol):
    """Threads, the vector unit of one core, the bytes of each memory (scope -> bytes, others are unlimited), the alignment of buffers in bytes, and the limits
    of programs.

    vector_bytes, vector_registers: the size of the widest vectors, and how many of them a program can hold; vector_group: how many
    registers one of them occupies; shorter vectors occupy fewer.
    """

    @property
    def threads(self) -> int: ...
    @property
    def vector_bytes(self) -> int: ...
    @property
    def vector_registers(self) -> int: ...
    @property
    def vector_group(self) -> int: ...
    @property
    def capacities(self) -> Mapping[str, int]: ...
    @property
    def alignment(self) -> int: ...
    @property
    def limits(self) -> tuple[Limit, ...]: ...


@dataclass(frozen=True)
class Limit:
    """A limit of programs. `holds(loops, machine)` is True when a program keeps it, by the same arithmetic for one program (ints, a bool) and for a
    population (arrays [n], a bool array).
    """

    name: str
    holds: Callable[[Loops, Machine], Flag]

    def __str__(self) -> str:
        return self.name
