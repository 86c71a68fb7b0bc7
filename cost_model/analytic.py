"""Estimates a program's time from first principles: instructions of its register tiles, and bytes moved between memory levels.

Of the machine it uses the vector width, registers and cache sizes, and the few numbers of its `Prior`. It is rough: two thirds of an operator's programs are
within a factor of 1.5, once scaled to that operator. But it is free: it picks the first programs to measure if no model knows the target, it is part of every
score before anything is measured, and it is what the learned model corrects.

The memory model is the classical one: loops whose data fit a cache together load them once; loops outside reload them each time, except for buffers that
do not move with the loop (roofline of the innermost loop, cache footprints as in Halide's and ROLLER's models).
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.alignment import loads_across_lines
from ansor.cost_model.buffer_features import Statement, statements_of
from ansor.cost_model.cache_sets import FirstCache
from ansor.cost_model.index_division import index_divisions
from ansor.cost_model.nest import Nest
from ansor.cost_model.register_tile import Tile, register_tile
from ansor.ir.columns import Flag, Row, anywhere, ceil, choose, larger, log, log2, negated, product, row, smaller
from ansor.ir.intrinsics import Block
from ansor.ir.loops import Loops
from ansor.schedule.blocks import blocks_of, row_loops
from ansor.schedule.legality import accumulators, registers_for
from ansor.schedule.machine import Machine
from ansor.targets.hardware import Caches
from ansor.targets.prior import Issue, Prior, Reduction

RESULT_PRODUCTS = 2.0
"""Products of blocks in the time in which a block of results is loaded and stored."""


class Core(Machine, Protocol):
    """What the estimate needs of a target: all that scheduling needs, its caches (0: absent), and what a core does per cycle."""

    @property
    def caches(self) -> Caches: ...
    @property
    def prior(self) -> Prior: ...


def first_cache(core: Core) -> FirstCache:
    """The geometry of a core's first cache."""
    return FirstCache(core.caches.line_bytes, core.prior.traffic.way_bytes)


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a statement costs, one number per program. instructions, transfers: cycles of all threads together, see `instruction_cycles` and `transfers`.

    lanes: elements of its vectors; threads: how many have work; fork: cycles to begin and end a loop that they share.
    """

    tile: Tile
    lanes: int
    instructions: Row
    transfers: tuple[Row, ...]
    threads: Row
    fork: Row = 0.0

    @property
    def cycles(self) -> Row:
        """Cycles of the whole statement."""
        return (self.instructions + sum(self.transfers, start=0.0)) / self.threads + self.fork

    @property
    def log_cycles(self) -> Row:
        """The logarithm of the cycles, at least 0."""
        return log(larger(self.cycles, 1.0))


def numbers_of(core: Core) -> Hashable:
    """All of a core that the estimate of a statement depends on besides the rest of its program and the threads: a name for `Statement.once`."""
    return core.prior, core.caches, core.vector_bytes, core.vector_registers, core.vector_group


def estimate(statement: Statement, core: Core) -> Estimate:
    """The estimate of one statement."""
    lanes = lanes_of(statement, core)
    tile = statement.once(("tile", lanes, core.prior.issue.optimizes), lambda: register_tile(statement, lanes, optimizes=core.prior.issue.optimizes))
    instructions = statement.once(("instructions", numbers_of(core)), lambda: instruction_cycles(statement, tile, core))
    fork = choose(begins_shared_loop(statement), core.prior.overhead.fork, 0.0) if core.threads > 1 else 0.0
    return Estimate(tile, lanes, instructions, tuple(transfers(statement, core)), threads_at_work(statement.nest, core), fork)


def estimated_cycles(loops: Loops, count: int, core: Core) -> NDArray[np.float64]:
    """Cycles of each program of a population, float64 [count]."""
    total = np.zeros(count)
    for statement in statements_of(loops, first_cache(core)):
        total += estimate(statement, core).cycles
    return total


def lanes_of(statement: Statement, core: Core) -> int:
    """Elements per vector."""
    widest = max(layout.element_bytes for buffer, layout in statement.layouts.items() if buffer in statement.footprints)
    lanes = max(1, core.vector_bytes // widest)
    intrinsic = statement.nest.path[-1].intrinsic if statement.nest.path else None
    return lanes if intrinsic is None else min(lanes, max(intrinsic.lanes))


def instruction_cycles(statement: Statement, tile: Tile, core: Core) -> Row:
    """Cycles of a statement's arithmetic and loads if all data are in the first cache, of all threads together."""
    issue, overhead, reduction = core.prior.issue, core.prior.overhead, core.prior.reduction
    divisions = overhead.division * index_divisions(statement.nest)
    intrinsic = statement.nest.path[-1].intrinsic if statement.nest.path else None
    if intrinsic is not None and intrinsic.block is not None:
        return block_cycles(statement.nest, intrinsic.block) + divisions
    loads = loads_of(statement, tile, core) / issue.loads
    work = tile.work.arithmetic / issue.arithmetic + tile.work.choices + overhead.call * tile.work.calls
    if statement.nest.store.combiner is None:
        return tile.bodies * larger(larger(work, loads), tile.vectors) + tile.runs + divisions
    most = row(accumulators(registers_for(statement.nest.path, statement.nest.store, core)))
    spills = overhead.spill * larger(tile.vectors - most, 0.0)
    latency = (issue.latency + (issue.late if intrinsic else 0.0)) / (chains_of(tile, reduction) * runs_at_once(tile, issue))
    body = larger(larger(work, loads), latency) + spills
    if issue.each:
        body = body + issue.each * (tile.vectors + tile.loads)
    folded = reduction.fold * log2(tile.partial.lanes)
    return tile.bodies * body + divisions + tile.runs * (overhead.result * tile.vectors + overhead.loop + folded * tile.vectors)


def loads_of(statement: Statement, tile: Tile, core: Core) -> Row:
    """Loads of a tile's body, with what those that cross a cache line take besides."""
    again = core.prior.issue.across
    if not again:
        return tile.loads
    return tile.loads + again * loads_across_lines(statement, tile.reads, lanes_of(statement, core), core.caches.line_bytes)


def chains_of(tile: Tile, reduction: Reduction) -> Row:
    """Independent chains of additions per result: 1, or one for each vector of partial results, at most `Reduction.running` of a single result, and its share
    of `Reduction.together` among several."""
    if not anywhere(tile.partial.lanes > 1):
        return 1.0  # the same as below, without columns
    running = choose(tile.vectors > 1, larger(reduction.together // tile.vectors, 1.0), reduction.running)
    return choose(tile.partial.lanes > 1, smaller(running, tile.partial.vectors), 1.0)


def block_cycles(nest: Nest, block: Block) -> Row:
    """Cycles of products of blocks, and of loading and storing their results: for each block as many as it can have rows, however many it has."""
    found = blocks_of(nest.path, nest.store)
    if found is None:
        return nest.iterations  # it will not be written in blocks
    rows = row_loops(nest.path, nest.store)
    around = reversed(nest.path[: len(nest.path) - 3 - len(rows)])
    steps = product(loop.var.extent for loop in itertools.takewhile(lambda loop: loop.kind == "reduce" and loop.stage == nest.store.stage, around))
    tile = product(loop.var.extent for loop in (*rows, *nest.path[-3:]))
    products = nest.iterations * row(found.down * found.along) / row(tile)
    return block.rows * (products + RESULT_PRODUCTS * products / row(steps))


def runs_at_once(tile: Tile, issue: Issue) -> Row:
    """Runs of a tile in flight at the same time, at least 1: if one is short, a processor starts the next while its sums wait for each other.

    A run is its bodies, each with a loop step, and three instructions per result vector: to initialise, accumulate and store it.
    """
    instructions = tile.bodies / tile.runs * (tile.vectors + tile.loads + 1.0) + 3.0 * tile.vectors
    return larger(issue.window / instructions, 1.0)


def transfers(statement: Statement, core: Core) -> list[Row]:
    """Cycles to bring a statement's data into each cache, the first one first, of all threads together; 0 for an absent cache."""
    return [loaded / rate for loaded, rate in zip(cache_loads(statement, core), core.prior.traffic.rates, strict=True)]


def cache_loads(statement: Statement, core: Core) -> list[Row]:
    """Bytes that enter each cache while a statement runs, the first one first; 0 for an absent cache."""
    (first, *_), fill = core.caches.sizes, core.prior.traffic.fill
    in_first, in_others = (statement.room, statement.tile_loads(first)), (statement.line_bytes, statement.loads)
    return [_loaded(statement, fill * size, *both) if size else 0.0 for size, both in zip(core.caches.sizes, (in_first, in_others, in_others), strict=True)]


def _loaded(statement: Statement, capacity: float, taken: Sequence[Row], tiles: Sequence[Row]) -> Row:
    """Bytes that enter a cache of this capacity: what the outermost loops whose data fit load, by `Statement.loads`; none if everything the
    program touches stays cached between runs. taken: bytes of the cache that data take, by boundary; tiles: bytes loaded, by boundary, where
    registers hold what is inside.
    """
    once_more = statement.once(("loaded", capacity, tiles is statement.loads), lambda: _loaded_again(statement, capacity, taken, tiles))
    return choose(statement.around.resident <= capacity, 0.0, once_more)


def _loaded_again(statement: Statement, capacity: float, taken: Sequence[Row], tiles: Sequence[Row]) -> Row:
    """The same if nothing stays cached between runs. What the body touches is loaded once each time it runs, even if it does not fit."""
    loaded = tiles[-1]
    in_registers = statement.once("in registers", lambda: _in_registers(statement.nest))
    for size, load, tile, held in reversed(list(zip(taken, statement.loads, tiles, in_registers, strict=True))):
        loaded = choose(size <= capacity, load, choose(held, tile, loaded))
    return loaded


def _in_registers(nest: Nest) -> tuple[Flag, ...]:
    """By boundary, whether registers hold what is inside: the loops inside the innermost reduction loop or, without one, the innermost loop."""
    reduces: Flag = False
    for loop, real in zip(nest.loops, nest.real, strict=True):
        reduces = reduces | (loop.kind == "reduce" and real)
    held: Flag = True
    inner: Flag = False
    found = [held]
    for loop, real in zip(reversed(nest.loops), reversed(nest.real), strict=True):
        ends = real & (reduces if loop.kind == "reduce" else negated(reduces) & inner)
        held, inner = held & negated(ends), inner | real
        found.append(held)
    return tuple(reversed(found))


def threads_at_work(nest: Nest, core: Core) -> Row:
    """Average number of busy threads, given the iterations of the parallel loops: 3 iterations on 2 threads keep 1.5 busy."""
    degree: Row = 1.0
    if core.threads == 1:
        return degree
    for loop, extent in zip(nest.loops, nest.extents, strict=True):
        degree = choose(loop.parallel, degree * extent, degree)
    return degree / ceil(degree / core.threads)


def begins_shared_loop(statement: Statement) -> Flag:
    """Whether the statement is the first in a loop whose iterations threads share. Parallel loops are outermost, one directly inside the other."""
    begun: Flag = False
    entered: Flag = False
    for loop, real in zip(statement.nest.loops, statement.nest.real, strict=True):
        if loop.var in statement.around.begins:
            begun = begun | loop.parallel & real
        else:
            entered = entered | loop.parallel & real
    return begun & negated(entered)
