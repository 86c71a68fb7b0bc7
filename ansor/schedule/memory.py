"""Checks what programs keep in memories against the machine's capacities: scope -> bytes. A scope without a capacity has no limit.

Buffers that live as long as the program lie side by side; a buffer inside a loop exists while its nest runs. The arithmetic is the same for one program
(ints) and for a population (arrays [n]).
"""

from __future__ import annotations

from collections.abc import Iterator

from ansor.errors import ScheduleError
from ansor.ir.columns import Flag, Int, ceil_div, choose, product
from ansor.ir.loops import Buffer, For, Loops, Node
from ansor.schedule.machine import Machine
from ansor.schedule.scopes import INSIDE, WHOLE
from ansor.te.dtypes import BYTES

INSIDE_WORDS = "for stages computed at loops", "compute them at inner loops, or at root"
WHOLE_WORDS = "for whole intermediates", "compute stages at loops of those that read them, or inline them"


def fits_memories(loops: Loops, machine: Machine) -> Flag:
    """True (for each program) when no memory overflows."""
    result: Flag = True
    for scope, capacity in machine.capacities.items():
        for used in used_bytes(loops, scope, machine.alignment):
            result = result & (used <= capacity)
    return result


def check_memories(loops: Loops, machine: Machine) -> None:
    """Raises ScheduleError when one program needs more of a memory than there is."""
    for scope, capacity in machine.capacities.items():
        needed = max(map(int, used_bytes(loops, scope, machine.alignment)), default=0)
        if needed > capacity:
            what, cure = INSIDE_WORDS if scope == INSIDE else WHOLE_WORDS if scope == WHOLE else (f"of {scope} memory", "keep smaller regions there")
            raise ScheduleError(f"asked for a program that needs {needed} bytes {what}; a kernel for {machine} has {capacity}: {cure}")


def used_bytes(loops: Loops, scope: str, alignment: int) -> Iterator[Int]:
    """Bytes of a scope while each nest runs."""
    kept = list(_kept(loops, scope, alignment))
    for node in loops.body:
        inside = local_bytes(node) if scope == INSIDE else sum(_inside(node, scope), start=0)
        yield sum(kept, start=inside)


def local_bytes(node: Node) -> Int:
    """Bytes of all local buffers in a nest."""
    return sum((size_of(buffer) for loop in _loops(node) for buffer in loop.locals if buffer.scope == INSIDE), start=0)


def size_of(buffer: Buffer) -> Int:
    """Bytes of a buffer, with all its copies."""
    return buffer.size * buffer.copies * BYTES[buffer.dtype]


def _kept(loops: Loops, scope: str, alignment: int) -> Iterator[Int]:
    """Bytes of each buffer that lives as long as the program, including the gap to the next."""
    for buffer in loops.intermediates:
        if buffer.scope == scope:
            yield _padded(size_of(buffer), alignment)
    for node in loops.body if scope != INSIDE else ():
        for buffer, once in _buffers(node, ()):
            # Code generation drops loops that run once; a buffer left without a loop around it lives as long as the program.
            if (WHOLE if buffer.scope == INSIDE else buffer.scope) == scope and once is not False:
                yield choose(once, _padded(size_of(buffer), alignment), 0)


def _inside(node: Node, scope: str) -> Iterator[Int]:
    for buffer, once in _buffers(node, ()):
        if buffer.scope == scope and once is not True:
            yield choose(once, 0, size_of(buffer))


def _buffers(node: Node, path: tuple[For, ...]) -> Iterator[tuple[Buffer, Flag]]:
    """Every buffer inside a nest, and whether all loops around it run once."""
    if isinstance(node, For):
        path = (*path, node)
        for buffer in node.locals:
            yield buffer, product(loop.var.extent for loop in path) == 1
        for inner in node.body:
            yield from _buffers(inner, path)


def _padded(size: Int, alignment: int) -> Int:
    return ceil_div(size, alignment) * alignment


def _loops(node: Node) -> Iterator[For]:
    if isinstance(node, For):
        yield node
        for inner in node.body:
            yield from _loops(inner)
