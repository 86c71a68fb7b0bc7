"""Estimates how many of a statement's vector accesses cross a cache line, and so touch two lines.

A vector's offset from the start of its buffer, which is line-aligned, is a sum of steps, one per loop except that of its lanes. So it begins at
a multiple of the largest power of two g that divides all of them. Of the line / g possible places, W / g - 1 are less than a vector before the end of a
line, for vectors of W bytes: a share of (W - g) / line, if all places are equally frequent.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansor.cost_model.buffer_features import Statement
from ansor.cost_model.nest import Nest
from ansor.cost_model.touched import Footprint
from ansor.ir.columns import Flag, Row, choose, excess, larger, negated, power_of_two_in, smaller
from ansor.ir.loops import Buffer

LEAST_GRAIN = 4.0
"""Bytes; smaller elements are assumed to begin at a multiple of them."""


def loads_across_lines(statement: Statement, reads: Mapping[Buffer, Row], lanes: int, line_bytes: int) -> Row:
    """How many of a register tile's vector loads cross a line. reads: loads of each buffer; lanes: elements of a load, which are those of the widest type."""
    return sum((count * share_across_lines(statement, buffer, lanes, line_bytes) for buffer, count in reads.items()), start=0.0)


def share_across_lines(statement: Statement, buffer: Buffer, lanes: int, line_bytes: int) -> Row:
    """`across_lines` of a buffer in a statement."""
    touched, element = statement.footprints[buffer], statement.layouts[buffer].element_bytes
    name = ("across lines", buffer, lanes, line_bytes)
    return statement.once(name, lambda: across_lines(statement.nest, touched, element, lanes * element, line_bytes))


def across_lines(nest: Nest, touched: Footprint, element_bytes: int, vector_bytes: int, line_bytes: int) -> Row:
    """Share of a buffer's vector accesses that cross a line, 0 .. 1 for vectors no longer than a line; 0 if it is not accessed in contiguous vectors."""
    lanes = [_in_lanes(nest, touched, level) for level in range(len(nest.loops))]
    if all(flag is False for flag in lanes):
        return 0.0
    width: Row = 0.0
    line = float(line_bytes)
    grain: Row = line
    for level, step in enumerate(touched.strides):
        if step is None:
            continue
        width = choose(lanes[level], smaller(nest.extents[level] * element_bytes, float(vector_bytes)), width)
        stands = lanes[level] | negated(nest.real[level])
        step_grain = power_of_two_in(step, line / element_bytes) * element_bytes
        grain = smaller(grain, choose(stands, line, larger(step_grain, LEAST_GRAIN)))
    return excess(width, grain) * (1.0 / line)


def _in_lanes(nest: Nest, touched: Footprint, level: int) -> Flag:
    """Where this loop forms the lanes of contiguous vectors."""
    step = touched.strides[level]
    return False if step is None else nest.loops[level].vectorized & nest.real[level] & (step == 1.0)
