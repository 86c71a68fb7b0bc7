"""Finds the place of the greatest or least of several values, for argmax, pairs reduced to their extreme, and the gradient of pooling."""

from __future__ import annotations

from collections.abc import Iterable

from ansor.te.expr import INDEX, Const, Expr, Select, binary, is_float


def flat_place(taps: Iterable[tuple[Expr, int]]) -> Expr:
    """The number of an element in memory order, from its indices and their extents."""
    place: Expr = Const(0, INDEX)
    for tap, extent in taps:
        place = place * extent + tap
    return place


def place_of_extreme(value: Expr, best: Expr, taps: Iterable[tuple[Expr, int]], nowhere: int, where: Expr | None = None) -> Expr:
    """The place of `value` where it is `best`, the extreme of all; `nowhere` elsewhere, and where `where` does not hold.

    The minimum over these places is the first such element, the maximum the last. If some value is NaN, the extreme is NaN, which equals nothing: the places
    are then those of the NaNs.
    """
    found = binary("eq", value, best)
    if is_float(value.dtype):
        found = binary("or", found, binary("ne", value, value))
    if where is not None:
        found = binary("and", where, found)
    return Select(found, flat_place(taps), Const(nowhere, INDEX), INDEX)
