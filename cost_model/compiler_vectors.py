"""Loops that no annotation puts in vectors, and that the C compiler runs in vectors by itself.

It takes the innermost loop that it does not write out: around a reduction, that is the next loop outside, when the reduction is so short that it is written out
as a whole. Whatever moves with that loop has to lie in neighbouring places, or in groups so narrow that a few shuffles take them apart.

This is a guess at what compilers do, and kept short. It knows nothing of loops that hold other statements, of loops inside a reduction that are not written
out, and of what shuffles cost; an index read from data counts as moving by one.
"""

from __future__ import annotations

from ansor.cost_model.buffer_features import Statement
from ansor.ir.columns import Flag, Row, anywhere, choose, larger, negated, row
from ansor.ir.loops import Buffer
from ansor.schedule.legality import vector_pieces

WRITTEN_OUT = 8.0  # statements that a loop is written out into without being asked to
APART = 8.0  # elements from one lane to the next that shuffles still take apart


def lanes_by_compiler(statement: Statement, elements: Row, lanes: int) -> Row:
    """How many iterations of a statement's body run at once; 1 where the compiler leaves it as it is. elements: iterations that the body writes out."""
    nest = statement.nest
    found: Row = 1.0
    if any(loop.intrinsic for loop in nest.loops):
        return found
    free: Flag = True
    for loop, real in zip(nest.loops, nest.real, strict=True):
        free = free & negated(real & loop.vectorized)
    written: Row = elements
    reduced: Flag = nest.store.combiner is None  # a loop of the reduction lies further in, or there is none
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
    """Whether what one vector touches of a buffer lies together, or does not move at all."""
    footprint = statement.footprints[buffer]
    stride = footprint.strides[level]
    if stride is None:
        return True
    near = stride == 1.0 if buffer is statement.nest.store.buffer else stride <= APART
    return near | negated(footprint.moves[level])
