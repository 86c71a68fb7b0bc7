"""Splits a number of elements into vectors."""

from __future__ import annotations


def chunks(extent: int, widest: int) -> list[tuple[int, int]]:
    """`extent` as (offset, lanes): as many vectors of `widest` lanes as fit, then halves, then single elements (lanes 1)."""
    found, offset, lanes = [], 0, widest
    while offset < extent:
        while lanes > extent - offset:
            lanes //= 2
        found.append((offset, max(lanes, 1)))
        offset += max(lanes, 1)
    return found
