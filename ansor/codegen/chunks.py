"""Splits a number of elements into vectors, or into parts of a limited length."""

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


def whole_first(extent: int, most: int) -> list[tuple[int, int]]:
    """`extent` as (offset, count): parts of `most`, and the rest."""
    return [(begin, min(most, extent - begin)) for begin in range(0, extent, most)]


def divided(extent: int, most: int) -> list[tuple[int, int]]:
    """`extent` as (offset, count): as few parts of at most `most` as possible, all but the last one equal."""
    return whole_first(extent, -(-extent // -(-extent // most)))
