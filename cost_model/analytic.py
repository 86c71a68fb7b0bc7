"""How long a program should take, from first principles: instructions of its register tiles, and bytes between the levels of memory.

Knows nothing about a particular machine but its vector width, registers and cache sizes. It is rough (within a factor of two on what we tried) and costs
nothing to have, so it picks the first programs to measure, chooses one where nothing is measured, and is a feature the learned model corrects.

The model of memory is the classical one: of the loops around a statement, those whose data fit a cache together load it once; what lies outside loads it
again each time (roofline of the innermost loop, cache footprints as in Halide's and ROLLER's models).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.buffer_features import Statement, statements_of
from ansor.cost_model.nest import Mask, Nest, anywhere
from ansor.ir.intrinsics import intrinsic_named
from ansor.ir.loops import Buffer, Loops
from ansor.schedule.legality import accumulators
from ansor.schedule.machine import Machine
from ansor.te.expr import Call, Select, walk

Column = NDArray[np.float64]

LATENCY = 4.0  # cycles of a multiply-add; two can start in each
RUNNING, TOGETHER = 4.0, 8.0  # vectors of partial results that one element holds while it is reduced, and that several hold together
FOLD_CYCLES = 20.0  # to combine those of one element
CALL_CYCLES = 14.0  # one vector, or one element, of exp, tanh, ...
LOOP_CYCLES = 8.0  # leaving and entering the loops around a tile
L2_BYTES, L3_BYTES, MEMORY_BYTES = 40.0, 16.0, 8.0  # bytes a cycle that each level delivers
FILL = 0.75  # share of a cache that a tile can use
SPILL = 3.0  # cycles for each accumulator that has no register


class Core(Machine, Protocol):
    """What the estimate needs of a target: what scheduling asks of it, and its caches."""

    @property
    def l1_bytes(self) -> int: ...
    @property
    def l2_bytes(self) -> int: ...
    @property
    def l3_bytes(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Tile:
    """The register tile of a statement, one number per program.

    elements: iterations of the tile's loops; vectors: instructions they take; loads: memory reads of one body; runs: how often the tile is entered;
    bodies: how often its body runs; partial: its innermost reduction runs in vectors of partial results.
    """

    elements: Column
    vectors: Column
    loads: Column
    runs: Column
    bodies: Column
    partial: NDArray[np.bool_]


def estimated_cycles(loops: Loops, count: int, core: Core) -> Column:
    """Cycles of each program of a population, float64 [count]."""
    total = np.zeros(count)
    for statement in statements_of(loops, count, 64):
        total += statement_cycles(statement, core)
    return total


def log_cycles(program: Sequence[Statement], core: Core) -> Column:
    """Log of each statement's cycles in the order of feature rows (programs, then their statements), float64 [programs * statements]."""
    columns = [statement_cycles(statement, core) for statement in program]
    return np.log(np.maximum(np.stack(columns, axis=1), 1.0)).reshape(-1)


def statement_cycles(statement: Statement, core: Core) -> Column:
    """Cycles of one statement in each program, over all threads."""
    tile = register_tile(statement, core)
    cycles = instruction_cycles(statement, tile, core) + transfer_cycles(statement, core)
    return cycles / threads_at_work(statement.nest, core)


def register_tile(statement: Statement, core: Core) -> Tile:
    """The loops that are written out: those inside the innermost reduction, or the vectorised one of a statement that reduces nothing."""
    nest = statement.nest
    elements, vectors = np.ones(nest.count), np.ones(nest.count)
    loads = {buffer: np.ones(nest.count) for buffer in statement.footprints if buffer is not nest.store.buffer}
    held = np.ones(nest.count)
    inside = np.ones(nest.count, dtype=bool)
    running = np.ones(nest.count, dtype=bool)
    partial = np.zeros(nest.count, dtype=bool)
    reduces = nest.store.combiner is not None
    lanes = _lanes(statement, core)
    groups = bool(nest.loops) and bool(nest.loops[-1].intrinsic)  # neighbours in a vector are a group apart
    for level in range(len(nest.loops) - 1, -1, -1):
        loop, extent = nest.loops[level], nest.extents[level]
        if loop.stage != nest.store.stage:
            break
        if loop.intrinsic:  # written out with the vectors around it
            elements = elements * extent
            continue
        if loop.kind == "reduce":
            along = loop.vectorized & inside & nest.real[level]  # vectors of partial results
            elements = np.where(along, elements * extent / _pieces(extent, lanes), elements)
            inside = inside & ~nest.real[level]
            held = np.where(running, held * np.where(along, _pieces(extent, lanes), extent), held)
            partial = partial | along
            continue
        running = running & (inside | ~nest.real[level])
        vectorized = loop.vectorized & _moves_by(1.0, statement, nest.store.buffer, level)
        together = partial & np.asarray(loop.unrolled)
        written: NDArray[np.bool_] = inside | together if reduces else inside & vectorized
        if not written.any():
            continue
        some = anywhere(vectorized)
        pieces = np.where(vectorized, _pieces(extent, lanes), extent) if some else extent
        elements = np.where(written, elements * extent, elements)
        vectors = np.where(written, vectors * pieces, vectors)
        for buffer in loads:
            moves = statement.footprints[buffer].moves[level]
            if moves is False:
                continue
            factor = np.where(vectorized & (_moves_by(1.0, statement, buffer, level) | groups), pieces, extent) if some else extent
            if some:  # every second element: two vectors and a shuffle
                factor = np.where(vectorized & _moves_by(2.0, statement, buffer, level), np.minimum(3.0 * pieces, extent), factor)
            loads[buffer] = np.where(written if moves is True else written & moves, loads[buffer] * factor, loads[buffer])
    bodies = nest.iterations / elements
    total = sum(loads.values(), start=np.zeros(nest.count))
    return Tile(elements, vectors, total, bodies / held, bodies, partial)


def _lanes(statement: Statement, core: Core) -> int:
    widest = max(layout.element_bytes for buffer, layout in statement.layouts.items() if buffer in statement.footprints)
    lanes = max(1, core.vector_bytes // widest)
    intrinsic = intrinsic_named(statement.nest.path[-1].intrinsic) if statement.nest.path else None
    return lanes if intrinsic is None else min(lanes, max(intrinsic.lanes))


def _moves_by(elements: float, statement: Statement, buffer: Buffer, level: int) -> Mask:
    stride = statement.footprints[buffer].strides[level]
    return False if stride is None else stride == elements


def _pieces(extent: Column, lanes: int) -> Column:
    """Vectors for `extent` elements: whole ones, then halves."""
    pieces = np.floor(extent / lanes)
    rest = extent - pieces * lanes
    while lanes > 1:
        lanes //= 2
        more = np.floor(rest / lanes)
        pieces, rest = pieces + more, rest - more * lanes
    return pieces


def instruction_cycles(statement: Statement, tile: Tile, core: Core) -> Column:
    """Cycles of a statement's arithmetic and loads in each program when all data are in the first cache, float64 [n], of all threads together."""
    value = statement.nest.store.value
    calls = sum(isinstance(node, Call) for node in walk(value))
    choices = sum(isinstance(node, Select) for node in walk(value))
    work = tile.vectors / 2 + choices * tile.vectors + calls * CALL_CYCLES * tile.vectors
    if statement.nest.store.combiner is None:
        return tile.bodies * np.maximum(np.maximum(work, tile.loads / 2), tile.vectors) + tile.runs
    spills = SPILL * np.maximum(tile.vectors - accumulators(core.vector_registers), 0.0)
    running = np.where(tile.vectors > 1, np.maximum(TOGETHER // tile.vectors, 1.0), RUNNING)
    latency = np.where(tile.partial, LATENCY / running, LATENCY)
    body = np.maximum(np.maximum(work, tile.loads / 2), latency) + spills
    return tile.bodies * body + tile.runs * (3.0 * tile.vectors + LOOP_CYCLES + tile.partial * FOLD_CYCLES * tile.vectors)


def transfer_cycles(statement: Statement, core: Core) -> Column:
    """Cycles that a statement's data take on their way into the first cache in each program, float64 [n], of all threads together."""
    levels = ((core.l1_bytes, L2_BYTES), (core.l2_bytes, L3_BYTES), (core.l3_bytes, MEMORY_BYTES))
    return sum((loaded_bytes(statement, FILL * size) / rate for size, rate in levels if size), start=np.zeros(statement.nest.count))


def loaded_bytes(statement: Statement, capacity: float) -> Column:
    """Bytes that enter a cache of this capacity in each program, float64 [n]: the outermost loops whose data fit load once, for each iteration outside."""
    nest = statement.nest
    fits = statement.bytes <= capacity
    fits[-1] = True
    boundary, program = np.argmax(fits, axis=0), np.arange(nest.count)
    loaded: Column = statement.bytes[boundary, program] * nest.outside[boundary, program]
    return loaded


def threads_at_work(nest: Nest, core: Core) -> Column:
    """Threads that have work on the whole, float64 [n], given the iterations of the parallel loops: 3 iterations on 2 threads keep 1.5 busy."""
    degree = np.ones(nest.count)
    if core.threads == 1:
        return degree
    for loop, extent in zip(nest.loops, nest.extents, strict=True):
        degree = np.where(np.asarray(loop.parallel), degree * extent, degree)
    return degree / np.ceil(degree / core.threads)


