"""How many pages of memory a statement touches, and how often the processor has to look one up.

A processor keeps the addresses of some sixty pages at hand. A tile that reduces over the channels of images, each in pages of its own, uses more: then each of
its steps waits for an address from a larger table.
"""

from __future__ import annotations

from ansor.cost_model.buffer_features import Statement
from ansor.ir.columns import Row, choose

AT_HAND = 64.0
"""The number of pages whose addresses processors keep in their first table; it is 64 to 96 for data, of most."""

LOOK_UP = 8.0
"""Cycles to find one in the second table."""


def touched_pages(statement: Statement) -> tuple[Row, ...]:
    """Pages of all buffers, by boundary."""
    return statement.once("pages", lambda: _touched(statement))


def looked_up(statement: Statement) -> Row:
    """How many pages are looked up in the whole program: those that the outermost loops touch whose pages stay at hand, each time these loops run."""
    return statement.once("pages looked up", lambda: _looked_up(statement))


def _touched(statement: Statement) -> tuple[Row, ...]:
    total: list[Row] = [0.0] * len(statement.nest.counts.inside)
    for touched in statement.footprints.values():
        total = [one + pages for one, pages in zip(total, touched.pages, strict=True)]
    return tuple(total)


def _looked_up(statement: Statement) -> Row:
    pages, entered = touched_pages(statement), _entered(statement)
    found = entered[-1]
    for held, count in reversed(list(zip(pages, entered, strict=True))):
        found = choose(held <= AT_HAND, count, found)
    return choose(pages[0] <= AT_HAND, 0.0, found)


def _entered(statement: Statement) -> list[Row]:
    """Pages entered in the whole program, by boundary, if those inside stay at hand; the next outer loop may go on within them."""
    nest = statement.nest
    total: list[Row] = [0.0] * len(nest.counts.inside)
    for touched in statement.footprints.values():
        kept: Row = 1.0
        for boundary, elements in enumerate(touched.elements):
            outer = max(boundary - 1, 0)
            if boundary:
                kept = choose(touched.moves[outer] & nest.real[outer], 1.0, kept * nest.extents[outer])
            in_pages = elements * (touched.pages[outer] / touched.elements[outer])
            total[boundary] = total[boundary] + in_pages * (nest.counts.outside[boundary] / kept)
    return total
