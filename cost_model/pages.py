"""How many pages of memory a statement touches, and how often the processor has to look up the address of one.

A processor keeps the addresses of 64 or more pages at hand. A tile that reduces over the channels of images, each in pages of its own, may use more: then each
of its steps waits for an address from a larger table. Each statement is taken by itself, as if no other used the table between its iterations.
"""

from __future__ import annotations

from ansor.cost_model.buffer_features import Statement
from ansor.ir.columns import Row, choose

AT_HAND = 64.0
"""Pages whose addresses a processor keeps in its first table: 64 to 96 on x86 of recent years."""

LOOK_UP = 8.0
"""Cycles to find the address of a page in the second table."""


def touched_pages(statement: Statement) -> tuple[Row, ...]:
    """Pages of all buffers, by boundary."""
    return statement.once("pages", lambda: _touched(statement))


def looked_up(statement: Statement) -> Row:
    """How many pages the statement looks up in the whole program, by its outermost loops whose pages all stay at hand: each run of these loops looks up the
    pages that it enters. None if all of its pages stay at hand."""
    return statement.once("pages looked up", lambda: _looked_up(statement))


def _touched(statement: Statement) -> tuple[Row, ...]:
    total: list[Row] = [0.0] * len(statement.nest.counts.inside)
    for touched in statement.footprints.values():
        total = [one + pages for one, pages in zip(total, touched.space.pages, strict=True)]
    return tuple(total)


def _looked_up(statement: Statement) -> Row:
    pages, entered = touched_pages(statement), _entered(statement)
    found = entered[-1]
    for held, count in reversed(list(zip(pages, entered, strict=True))):
        found = choose(held <= AT_HAND, count, found)
    return found


def _entered(statement: Statement) -> list[Row]:
    """Pages entered in the whole program, by boundary, if those inside stay at hand: none if that is all of them. The next outer loop that moves a buffer may
    go on within its pages, so that an iteration enters the pages of that loop, divided by its iterations; windows that overlap count in full."""
    nest = statement.nest
    total: list[Row] = [0.0] * len(nest.counts.inside)
    for buffer, touched in statement.footprints.items():
        size, entered = float(statement.layouts[buffer].element_bytes), statement.entering[buffer].bytes
        share = touched.space.pages[0] / (touched.elements[0] * size)
        for boundary in range(1, len(total)):
            outer = boundary - 1
            here = touched.space.pages[outer] / (touched.elements[outer] * size)
            share = choose(touched.moves[outer] & nest.real[outer], here, share)
            total[boundary] = total[boundary] + entered[boundary] * share
    return total
