"""Pieces of a nest cover it, each element once; programs store the last tile in pieces."""

from __future__ import annotations

import pytest

from ansor.ir.linear import Var, of
from ansor.ir.loops import Buffer, Store
from ansor.te.expr import const
from ansor.vta.nests import Nest
from ansor.vta.pieces import PIECE, pieces_of


@pytest.mark.parametrize("extents", [(64, 8, 56), (40, 3, 3), (16, 1, 1), (16, 40, 20), (512, 7, 7), (80, 1, 300)])
def test_each_element_is_in_one_piece(extents: tuple[int, int, int]) -> None:
    o, y, x = (Var(name, extent) for name, extent in zip("oyx", extents, strict=True))
    store = Store("out", Buffer("out", extents, "int8", "output"), (of(o), of(y), of(x)), const(0, "int8"))
    nest = Nest(store, dict(zip((o, y, x), extents, strict=True)), {}, {o: 16})
    seen: set[tuple[int, ...]] = set()
    pieces = list(pieces_of(nest))
    for piece in pieces:
        counts = list(piece.counts().values())
        first = [piece.index(index).start // block for index, block in zip(store.index, (16, 1, 1), strict=True)]
        places = {(a, b, c) for a in range(counts[0]) for b in range(counts[1]) for c in range(counts[2])}
        moved = {tuple(at + start for at, start in zip(place, first, strict=True)) for place in places}
        assert not seen & moved and len(moved) < 2 * PIECE
        seen |= moved
    assert len(seen) == -(-extents[0] // 16) * extents[1] * extents[2]
    assert sum(piece.extents[o] * piece.extents[y] * piece.extents[x] for piece in pieces) == extents[0] * extents[1] * extents[2]
