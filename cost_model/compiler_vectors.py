"""Guesses which loops without annotations, and which statements in a row, the C compiler vectorizes by itself.

It vectorizes the innermost loop that it does not unroll: around a reduction, that is the next outer loop, if the reduction is short enough to be fully
unrolled. Accesses that move with that loop must be contiguous, or in groups so narrow that a few shuffles separate them. It also combines statements written
out in a row, and then collects operands that are far apart before the loop that does not change them.

This is a deliberately short guess at what compilers do. It ignores loops that hold other statements, and loops inside a reduction that are not unrolled; an
index read from data counts as moving by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansor.cost_model.buffer_features import Statement
from ansor.cost_model.index_division import runs_in_vectors, steps_evenly
from ansor.ir.columns import Flag, Row, anywhere, choose, larger, negated, row
from ansor.ir.loops import Buffer
from ansor.schedule.legality import vector_pieces

UNROLLED = 8.0  # the most statements of a loop that the compiler unrolls without a pragma
AROUND = 32.0  # the same for loops around a reduction
APART = 8.0  # the largest stride, in elements, at which the compiler vectorizes a loop
SHUFFLED = 4.0  # the largest stride that shuffles handle
SHUFFLES = 2.0  # loads that a shuffled vector costs
GATHERED = 1.0  # loads per lane at larger strides


@dataclass(frozen=True, eq=False)
class Packed:
    """lanes: how many iterations of a statement's body run at once, 1 if the compiler does not vectorize it; loads: how many loads each read of it costs."""

    lanes: Row
    loads: Mapping[Buffer, Row]


def packed_by_compiler(statement: Statement, elements: Row, lanes: int, *, optimizes: bool) -> Packed:
    """What the compiler vectorizes. elements: unrolled iterations in the body; optimizes: see `Issue`."""
    nest = statement.nest
    found: Row = 1.0
    loads: dict[Buffer, Row] = dict.fromkeys(statement.footprints, 1.0)
    if any(loop.intrinsic for loop in nest.loops):
        return Packed(found, loads)
    free: Flag = True
    for level, (loop, real) in enumerate(zip(nest.loops, nest.real, strict=True)):
        # Other loops that are not written as vectors are written out by element, so there is nothing left to vectorize around them.
        free = free & negated(real & (runs_in_vectors(nest, level) if loop.kind == "reduce" else loop.vectorized))
    written: Row = elements
    reduced: Flag = nest.store.combiner is None  # an inner loop is a reduction, or there is none
    short: Row = 1.0  # iterations of the unrolled loops inside
    for level in range(len(nest.loops) - 1, -1, -1):
        loop, extent, real = nest.loops[level], nest.extents[level], nest.real[level]
        if loop.kind == "reduce":
            written = written * extent
            free = free & (negated(real) | (written <= larger(row(loop.runs.unroll_limit), UNROLLED)))
            reduced = reduced | real
            continue
        fits = free & reduced & real
        if anywhere(fits):
            for buffer in statement.footprints:
                fits = fits & _is_near(statement, buffer, level, short)
            found = choose(fits, extent / row(vector_pieces(loop.var.extent, lanes)), found)
            if optimizes:
                loads = {buffer: choose(fits, _loads(statement, buffer, level, lanes), count) for buffer, count in loads.items()}
        if nest.store.combiner is None and optimizes:
            short = choose(real, short * extent, short)
            free = free & (negated(real) | (short <= UNROLLED))
        elif optimizes:
            short = choose(reduced & real, short * extent, short)
            written = choose(reduced & real, written * extent, written)
            free = free & (negated(reduced & real) | (written <= AROUND))
        else:
            free = free & negated(reduced & real)
    return Packed(found, loads)


def packed_in_line(statement: Statement, level: int, long: bool) -> Flag:
    """Whether the compiler makes vectors of statements written out in a row, the copies of a loop: if their results are neighbours, no other loop is annotated
    as vectorised, and each operand is the same for all, a neighbour too, or not changed by the innermost reduction, so that it is collected before that. If
    operations take `long`, collecting operands always pays."""
    nest, stored = statement.nest, statement.nest.store.buffer
    packed: Flag = _are_neighbours(statement, stored, level)
    if packed is False:
        return False
    packed = packed & (True if long else steps_evenly(nest, level))
    for other, (loop, real) in enumerate(zip(nest.loops, nest.real, strict=True)):
        packed = packed & negated(real & loop.vectorized & (other != level))
    for buffer, print_ in statement.footprints.items():
        near = _are_neighbours(statement, buffer, level)
        if buffer is not stored and not long and near is not True:
            packed = packed & (near | negated(print_.moves[level] & _moves_innermost(statement, buffer)))
    return packed


def _are_neighbours(statement: Statement, buffer: Buffer, level: int) -> Flag:
    """Whether the iterations of a loop access adjacent elements of a buffer."""
    stride = statement.footprints[buffer].strides[level]
    return stride is not None and stride == 1.0


def _moves_innermost(statement: Statement, buffer: Buffer) -> Flag:
    """Whether the statement's innermost reduction loop changes what it reads; if not, vectors of what is far apart are collected before it."""
    nest = statement.nest
    changed = zip(nest.loops, nest.real, statement.changed_by(buffer), strict=True)
    reductions = [(real, moved) for loop, real, moved in changed if loop.kind == "reduce" and loop.stage == nest.store.stage]
    if all(moved is True for _, moved in reductions):
        return True  # the same as below, without columns
    found: Flag = True
    for real, moved in reductions:
        found = (real & moved) | (negated(real) & found)  # the last real one decides
    return found


def _loads(statement: Statement, buffer: Buffer, level: int, lanes: int) -> Row:
    """The loads of a vector along a loop."""
    stride = statement.footprints[buffer].strides[level]
    return 1.0 if stride is None else choose(stride <= 1.0, 1.0, choose(stride <= SHUFFLED, SHUFFLES, GATHERED * lanes))


def _is_near(statement: Statement, buffer: Buffer, level: int, short: Row) -> Flag:
    """Whether a vector's accesses to a buffer are close together, or do not move at all. short: elements stored by the loops inside, written out."""
    footprint = statement.footprints[buffer]
    stride = footprint.strides[level]
    if stride is None:
        return True
    near = stride <= short if buffer is statement.nest.store.buffer else stride <= APART
    return near | negated(footprint.moves[level])
