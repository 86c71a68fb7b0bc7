"""Guesses which loops without annotations the C compiler vectorizes by itself.

It vectorizes the innermost loop that it does not unroll: around a reduction, that is the next outer loop, if the reduction is short enough to be fully
unrolled. Accesses that move with that loop must be contiguous, or in groups so narrow that a few shuffles separate them.

This is a deliberately short guess at what compilers do. It ignores loops that hold other statements, loops inside a reduction that are not
unrolled, and the cost of shuffles; an index read from data counts as moving by one.
"""

from __future__ import annotations

from ansor.cost_model.buffer_features import Statement
from ansor.ir.columns import Flag, Row, anywhere, choose, larger, negated, row
from ansor.ir.loops import Buffer
from ansor.schedule.legality import vector_pieces

WRITTEN_OUT = 8.0  # statements up to which a loop is unrolled unasked
APART = 8.0  # the most elements from one lane to the next that shuffles still handle


def lanes_by_compiler(statement: Statement, elements: Row, lanes: int) -> Row:
    """How many iterations of a statement's body run at once; 1 if the compiler does not vectorize it. elements: unrolled iterations in the body."""
    nest = statement.nest
    found: Row = 1.0
    if any(loop.intrinsic for loop in nest.loops):
        return found
    free: Flag = True
    for loop, real in zip(nest.loops, nest.real, strict=True):
        free = free & negated(real & loop.vectorized)
    written: Row = elements
    reduced: Flag = nest.store.combiner is None  # an inner loop is a reduction, or there is none
    for level in range(len(nest.loops) - 1, -1, -1):
        loop, extent, real = nest.loops[level], nest.extents[level], nest.real[level]
        if loop.kind == "reduce":
            written = written * extent
            free = free & (negated(real) | (written <= larger(row(loop.runs.unroll_limit), WRITTEN_OUT)))
            reduced = reduced | real
            continue
        fits = free & reduced & real
        if anywhere(fits):
            for buffer in statement.footprints:
                fits = fits & _is_near(statement, buffer, level)
            found = choose(fits, extent / row(vector_pieces(loop.var.extent, lanes)), found)
        free = free & negated(reduced & real)
    return found


def _is_near(statement: Statement, buffer: Buffer, level: int) -> Flag:
    """Whether a vector's accesses to a buffer are close together, or do not move at all."""
    footprint = statement.footprints[buffer]
    stride = footprint.strides[level]
    if stride is None:
        return True
    near = stride == 1.0 if buffer is statement.nest.store.buffer else stride <= APART
    return near | negated(footprint.moves[level])
