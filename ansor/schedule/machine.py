"""What scheduling asks of a machine, and limits: named tests of whether a program is worth building for it. Targets have these fields and more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ansor.ir.columns import Flag
from ansor.ir.loops import Loops


class Machine(Protocol):
    """Threads, the vector unit of one core, how many bytes each memory holds (scope -> bytes, no limit for others), to how many bytes buffers are aligned, and
    what programs may not exceed.

    vector_bytes, vector_registers: of the widest vectors, and how many of them a program can hold; vector_group: in the place of one, how many of so many times
    fewer bytes.
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
    """What a program may not exceed. `holds(loops, machine)`: True when it does not; the same arithmetic for one program (ints, a bool) and for a
    population (arrays [n], a bool array).
    """

    name: str
    holds: Callable[[Loops, Machine], Flag]

    def __str__(self) -> str:
        return self.name
