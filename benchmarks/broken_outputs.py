"""Puts mistakes into the outputs of a correct program, based on the reference's outputs and the allowed error."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ansor.measure.verify import fill_unwritten

Array = NDArray[np.generic]
Bounds = NDArray[np.float64]
Change = Callable[[Array, Array, Bounds, random.Random], None]


def rounded(expected: Array, dtype: str) -> Array:
    """The outputs of a perfect program."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(expected).astype(dtype)


def right(expected: Array, dtype: str, allowed: Bounds, rng: random.Random) -> Array:
    """Correct outputs with errors up to the allowed one: random errors in all elements, or the same share of the bound in each."""
    best = rounded(expected, dtype)
    if best.dtype.kind != "f":
        return best
    wide, draw = expected.astype(np.float64), np.random.default_rng(rng.randrange(1 << 32))
    shares = draw.uniform(-1, 1, wide.shape) if rng.random() < 0.7 else np.full(wide.shape, draw.choice((-1.0, 1.0)))
    with np.errstate(over="ignore", invalid="ignore"):
        off = (wide + shares * allowed * rng.choice((0.1, 0.5, 0.9, 1.0))).astype(dtype)
        close = np.abs(off.astype(np.float64) - wide) <= allowed * (1 - 1e-6)  # the scale is rounded in one of two ways
    return np.where(close & np.isfinite(best), off, best)


def _at(array: Array, rng: random.Random) -> int:
    return rng.randrange(array.size)


def _flip(found: Array, expected: Array, allowed: Bounds, rng: random.Random) -> None:
    place = _at(found, rng)
    found[place] = ~found[place] if found.dtype.kind in "iub" else -found[place]


def _shift(found: Array, expected: Array, allowed: Bounds, rng: random.Random) -> None:
    begin = _at(found, rng)
    found[begin:] = np.roll(found[begin:], rng.choice((1, -1, 4)))


def _missing(found: Array, expected: Array, allowed: Bounds, rng: random.Random) -> None:
    tile = rng.choice((1, 3, 8, 16))
    kept = found[: max(0, found.size - tile)].copy()
    fill_unwritten(found)
    found[: kept.size] = kept


def _zeroed(found: Array, expected: Array, allowed: Bounds, rng: random.Random) -> None:
    begin = _at(found, rng)
    found[begin : begin + rng.choice((1, 4, 16))] = 0


def _swapped(found: Array, expected: Array, allowed: Bounds, rng: random.Random) -> None:
    one, other = _at(found, rng), _at(found, rng)
    found[[one, other]] = found[[other, one]]


def _at_the_bound(found: Array, expected: Array, allowed: Bounds, rng: random.Random) -> None:
    """The last allowed value, or one of the next two."""
    place, side = _at(found, rng), rng.choice((-1.0, 1.0))
    if found.dtype.kind != "f":
        found[place] = found[place] + found.dtype.type(1)
        return
    edge = found.dtype.type(float(expected[place]) + side * allowed[place])
    for _ in range(rng.randrange(3)):
        edge = np.nextafter(edge, found.dtype.type(side * np.inf))
    found[place] = edge


def _times_the_bound(found: Array, expected: Array, allowed: Bounds, rng: random.Random) -> None:
    place, factor = _at(found, rng), rng.choice((0.5, 0.99, 1.01, 2.0, 8.0, 15.0, 16.5, 17.0, 32.0, 1e3, 1e9))
    with np.errstate(over="ignore", invalid="ignore"):
        found[place] = found[place] ^ found.dtype.type(1) if found.dtype.kind != "f" else float(expected[place]) + rng.choice((-1, 1)) * factor * allowed[place]


def _cancelling(found: Array, expected: Array, allowed: Bounds, rng: random.Random) -> None:
    """Errors that cancel in a sum."""
    begin = _at(found, rng)
    some = found[begin : begin + 16]
    away = np.where(np.arange(some.size) % 2, 1, -1) * (20 * allowed[begin : begin + 16] if found.dtype.kind == "f" else 1)
    with np.errstate(over="ignore", invalid="ignore"):
        found[begin : begin + 16] = np.add(some, away.astype(found.dtype))


def _odd(found: Array, expected: Array, allowed: Bounds, rng: random.Random) -> None:
    place = _at(found, rng)
    found[place] = rng.choice((np.nan, np.inf, -np.inf)) if found.dtype.kind == "f" else 1 - found[place]


CHANGES: dict[str, Change] = {
    "flipped": _flip, "shifted": _shift, "missing last tile": _missing, "zeroed": _zeroed, "swapped": _swapped, "at the bound": _at_the_bound,
    "times the bound": _times_the_bound, "cancelling": _cancelling, "not finite": _odd,
}  # fmt: skip


def broken(expected: Array, dtype: str, allowed: Bounds, rng: random.Random) -> tuple[str, Array]:
    """The name of a mistake, and outputs with it. Some are still correct: two equal elements swapped, an error of half the bound."""
    name = rng.choice(sorted(name for name in CHANGES if np.dtype(dtype).kind in "fiu" or name not in ("cancelling", "at the bound")))
    found = rounded(expected, dtype).reshape(-1)
    if rng.random() < 0.3:
        found = right(expected, dtype, allowed, rng).reshape(-1)
    CHANGES[name](found, expected.reshape(-1), np.broadcast_to(allowed, expected.shape).reshape(-1), rng)
    return name, found.reshape(expected.shape)
