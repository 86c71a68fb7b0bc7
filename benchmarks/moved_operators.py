"""Operators that were never used in development until a figure of one of them led to a change. Now they are of the set "tuned on" (`operator_sets`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ansor import te
from ansor.te.tensor import Tensor


def cost_volume(channels: int, rows: int, columns: int, reach: int) -> list[Tensor]:
    """The correlation of two images at each position, for each shift of one of them (optical flow)."""
    a = te.placeholder((channels, rows, columns), name="a")
    b = te.placeholder((channels, rows + reach - 1, columns + reach - 1), name="b")
    c = te.reduce_axis(channels, "c")
    return [a, b, te.compute((reach, reach, rows, columns), lambda p, q, i, j: te.sum(a[c, i, j] * b[c, i + p, j + q], axis=c), name="y")]


OPERATORS: dict[str, Callable[[], list[Tensor]]] = {
    "cost_volume_64x40x56x9": partial(cost_volume, 64, 40, 56, 9),  # the model got features of pages of memory
}
"""Each with what was changed."""
