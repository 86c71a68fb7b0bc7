"""Which programs are worth building: register tiles fit the registers, memories are large enough, and code length is bounded.

The same arithmetic for one program (ints, a bool) and for a population (arrays [n], a bool array).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ScheduleError
from ansor.ir.columns import MANY_AT_ONCE, Flag, Int, choose, larger, negated, product
from ansor.ir.loops import For, Loops, Store, stores
from ansor.schedule.blocks import blocks_of
from ansor.schedule.machine import Limit, Machine
from ansor.schedule.memory import fits_memories
from ansor.te.dtypes import BYTES
from ansor.te.expr import computed

MAX_STATEMENTS = 4096
BESIDE = 2
"""Registers kept for operands where a group of registers holds one vector: what products read is narrower than their sums, and one factor is a scalar."""


def legal(loops: Loops, machine: Machine) -> Flag:
    """True (for each program) when it keeps all limits of the machine."""
    result: Flag = True
    for limit in machine.limits:
        result = result & _holds(limit, loops, machine)
    return result


def _holds(limit: Limit, loops: Loops, machine: Machine) -> Flag:
    """Whether the limit holds. Raises ScheduleError, naming the limit, where it does with columns what only numbers can do."""
    try:
        return limit.holds(loops, machine)
    except TypeError as error:
        raise ScheduleError(f"the limit {limit.name!r} of the target fails: {error}; {MANY_AT_ONCE}") from error


@lru_cache(maxsize=1)  # several limits ask for the same program, one after the other
def _statements(loops: Loops, vector_bytes: int) -> tuple[tuple[tuple[For, ...], Store, Int], ...]:
    """Every store with the loops around it, and its register tile in vectors."""
    return tuple((path, store, register_tile(path, store, vector_bytes)) for path, store in stores(loops.body))


def fits_registers(loops: Loops, machine: Machine) -> Flag:
    """True when register tiles leave registers for their operands."""
    result: Flag = True
    for path, store, tile in _statements(loops, machine.vector_bytes):
        if store.combiner is not None:
            held = tile + offsets(path, store, machine.vector_bytes)
            registers = registers_for(path, store, machine)
            result = result & (held <= accumulators(registers))
            result = result & (held + operands(path, store, tile, machine.vector_bytes) < registers)
    return result


def fills_instructions(loops: Loops, machine: Machine) -> Flag:
    """True when the vectors around an intrinsic fill whole instructions, at least of its narrowest form."""
    result: Flag = True
    for path, store, _ in _statements(loops, machine.vector_bytes):
        if store.combiner is not None:
            result = result & _fills_lanes(path)
    return result


def fits_blocks(loops: Loops, machine: Machine) -> Flag:
    """True when the blocks of a tile fit the matrix registers with their operands, and have rows and columns enough."""
    result: Flag = True
    for path, store, _ in _statements(loops, machine.vector_bytes):
        intrinsic = path[-1].intrinsic if path else None
        if store.combiner is None or intrinsic is None or intrinsic.block is None:
            continue
        found = blocks_of(path, store)
        if found is None:
            return False
        block = intrinsic.block
        result = result & (found.run >= block.least_rows) & (found.down <= block.held) & (found.along <= block.held)
        result = result & (path[-2].var.extent >= max(intrinsic.lanes) // 2)
    return result


def bounded_code(loops: Loops, machine: Machine) -> Flag:
    """True when no statement is unrolled into more than `MAX_STATEMENTS` copies."""
    result: Flag = True
    for path, _, tile in _statements(loops, machine.vector_bytes):
        result = result & (tile * written_out(path) <= MAX_STATEMENTS)
    return result


def parallel_once(loops: Loops, machine: Machine) -> Flag:
    """True when no parallel loop is inside another stage's parallel loop."""
    result: Flag = True
    for path, _, _ in _statements(loops, machine.vector_bytes):
        result = result & _no_nested_parallel(path)
    return result


LIMITS = (
    Limit("registers", fits_registers),
    Limit("whole instructions", fills_instructions),
    Limit("blocks", fits_blocks),
    Limit("code", bounded_code),
    Limit("parallel once", parallel_once),
    Limit("memories", fits_memories),
)
"""The limits of processors with vectors and memories of a given size."""


def registers_for(path: Sequence[For], store: Store, machine: Machine) -> Int:
    """Registers for vectors as long as those of a statement. Where several registers hold one vector, shorter vectors need fewer registers."""
    registers: Int = machine.vector_registers
    if machine.vector_group == 1:
        return registers
    lanes, shorter = max(1, machine.vector_bytes // BYTES[store.buffer.dtype]), 2
    along = product(choose(loop.vectorized, loop.var.extent, 1) for loop in path if loop.stage == store.stage)
    while shorter <= machine.vector_group:
        registers = choose(along * shorter <= lanes, (machine.vector_registers - BESIDE) * shorter + BESIDE, registers)
        shorter *= 2
    return registers


def accumulators(registers: Int) -> Int:
    """Vectors a tile may hold. The rest is for operands and for loads that a compiler starts early (with 28 of 32 held, it spills in every iteration)."""
    return registers - registers // 8 - 2


def legal_rows(loops: Loops, machine: Machine, count: int) -> NDArray[np.bool_]:
    """`legal` as an array [count], even where nothing depends on the row."""
    return np.broadcast_to(np.asarray(legal(loops, machine)), (count,))


def register_tile(path: tuple[For, ...], store: Store, vector_bytes: int) -> Int:
    """Vectors held while the innermost reduction runs: the spatial loops inside it, the vectorised loop counted in whole vectors, halves and single elements.

    1 for a store without a reduction, and where every reduction loop has one iteration.
    """
    if store.combiner is None:
        return 1
    tile: Int = 1
    inside: Int = 1  # 1 until the walk outwards meets a reduction of more than one iteration
    reduces: Int = 0
    own = [loop for loop in path if loop.stage == store.stage]
    if reduces_in_vectors(own):
        return product(loop.var.extent for loop in own if loop.unrolled)
    for loop in reversed(own):
        if loop.intrinsic:
            reduces = 1  # one instruction runs it together with the vectors around it
            continue
        if loop.kind == "reduce":
            inside = inside * choose(loop.var.extent > 1, 0, 1)
            reduces = larger(reduces, choose(loop.var.extent > 1, 1, 0))
            continue
        lanes = _lanes(path, store, vector_bytes)
        along = loop.vectorized & (_memory_step(store, loop) == 1)
        pieces = choose(along, vector_pieces(loop.var.extent, lanes), loop.var.extent)
        tile = tile * choose(inside > 0, pieces, 1)
    return choose(reduces > 0, tile, 1)


def operands(path: tuple[For, ...], store: Store, tile: Int, vector_bytes: int) -> Int:
    """Operand vectors that are live while a tile of `tile` vectors is computed once: those of a row, which the next row uses again, and one broadcast.

    Compilers load a whole row first, in whatever order the products are written.
    """
    along = vectors_in_row(path, store, vector_bytes)
    return choose(tile > along, along, 1) + 1


def vectors_in_row(path: tuple[For, ...], store: Store, vector_bytes: int) -> Int:
    """Vectors along the vectorised loop of a statement, including pieces of the last vector; 1 without such a loop."""
    along: Int = 1
    for loop in path:
        if loop.stage == store.stage and loop.kind != "reduce":
            vector = loop.vectorized & (_memory_step(store, loop) == 1)
            along = along * choose(vector, vector_pieces(loop.var.extent, _lanes(path, store, vector_bytes)), 1)
    return along


def reduces_in_vectors(loops: Sequence[For]) -> bool:
    """True when the innermost loop is a reduction and the loop directly around it is unrolled: those elements are reduced together."""
    if len(loops) < 2 or loops[-1].kind != "reduce" or loops[-2].kind != "spatial":
        return False
    return bool(loops[-2].unrolled) and not loops[-1].unrolled


def _lanes(path: tuple[For, ...], store: Store, vector_bytes: int) -> int:
    """Elements of the widest vector, or of the widest form of an intrinsic that fits it."""
    lanes, intrinsic = max(1, vector_bytes // BYTES[computed(store.buffer.dtype)]), path[-1].intrinsic if path else None
    return lanes if intrinsic is None else min(lanes, max(intrinsic.lanes))


def offsets(path: tuple[For, ...], store: Store, vector_bytes: int) -> Int:
    """Vectors an intrinsic holds besides the tile, one for each along the lanes: what it subtracts at the end."""
    intrinsic = path[-1].intrinsic if path else None
    if intrinsic is None or not intrinsic.offset:
        return 0
    return vector_pieces(path[-2].var.extent, _lanes(path, store, vector_bytes))


def _fills_lanes(path: tuple[For, ...]) -> Flag:
    intrinsic = path[-1].intrinsic if path else None
    return True if intrinsic is None or intrinsic.block is not None else path[-2].var.extent % min(intrinsic.lanes) == 0


def _memory_step(store: Store, loop: For) -> Int:
    """The distance in elements between the writes of neighbouring iterations."""
    return sum((index.coefficient(loop.var) * stride for index, stride in zip(store.index, store.buffer.strides, strict=True)), start=0)


def vector_pieces(extent: Int, lanes: int) -> Int:
    """Whole vectors, whose lanes are a power of two, plus one piece for every binary digit of the rest."""
    pieces = extent
    while lanes > 1:
        pieces = pieces - extent // lanes  # two half pieces make a whole one
        lanes //= 2
    return pieces


def written_out(path: tuple[For, ...]) -> Int:
    """How many copies of a statement unrolled loops make."""
    return product(choose(loop.unrolled, loop.var.extent, 1) for loop in path)


def _no_nested_parallel(path: tuple[For, ...]) -> Flag:
    result: Flag = True
    for k, loop in enumerate(path):
        for outer in path[:k]:
            if outer.stage != loop.stage:
                result = result & negated(outer.parallel & loop.parallel)
    return result
