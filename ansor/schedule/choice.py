"""Choices: the open numbers of a sketch, each with a finite table of legal values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import isqrt, prod
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

MAX_INNERMOST = 64
MAX_ROWS = 8192  # the most rows in a table; tiles beyond the first 8192 fit no cache
MAX_TRIED = 1 << 16  # the largest divisor found by trial division
UNEVEN_LENGTHS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 32, 40, 48, 64)
LEAST_FILLING = 0.8  # the least share of the tiles that a length that does not divide must fill
UNEVEN_WEIGHT = 0.3  # how often such a length is sampled, relative to one that divides
NEAR = 2.0  # the largest distance of neighbours, in sums of |log2|: a factor of two moved between two parts
MAX_NEIGHBOURS = 24

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Choice:
    """One open number (or tuple of numbers).

    name: unique within a sketch; steps refer to it.
    table: int64 [values, parts]; a gene is a row of it.
    weights: float64 [values], how likely sampling takes each value; None = uniform.
    kind: `tile` (neighbours move a factor between parts), or `level` (an ordered amount).
    numbers: the names by which steps refer to the parts of a row, each with its number of parts; by default its own name covers all. With several names,
        one gene sets the numbers of several steps that do not fit together in every combination.
    """

    name: str
    table: NDArray[np.int64]
    kind: str = "level"
    weights: NDArray[np.float64] | None = None
    extent: int = field(default=0)
    numbers: tuple[tuple[str, int], ...] = ()

    @property
    def size(self) -> int:
        """Number of legal values."""
        return int(self.table.shape[0])

    @cached_property
    def neighbours(self) -> NDArray[np.int64] | None:
        """int64 [values, m], padded with -1: the values that differ by one prime factor moved between two parts; None for levels. Uneven tables, and tables
        not made by the functions below, use the rows with the most similar lengths instead.
        """
        if self.kind != "tile":
            return None
        parts = self.table.shape[1]
        if np.array_equal(self.table, factor_table(self.extent, parts)):
            return _tile_neighbours(self.extent, parts)
        if np.array_equal(self.table, uneven_table(self.extent, parts)):
            return _near_neighbours(self.extent, parts)
        return near_rows(self.table, self.extent)

    def named(self, parts: Sequence[T]) -> dict[str, tuple[T, ...]]:
        """The parts of a row (or of many) under the names that steps use for them."""
        found, start = {}, 0
        for name, count in self.numbers or ((self.name, len(parts)),):
            found[name] = tuple(parts[start : start + count])
            start += count
        return found

    def index_of(self, value: tuple[int, ...]) -> int | None:
        """The gene of `value`, None when it is not legal."""
        found = np.flatnonzero((self.table == np.asarray(value, dtype=np.int64)).all(axis=1))
        return int(found[0]) if found.size else None


def tile_choice(name: str, extent: int, parts: int) -> Choice:
    """All ways to cut `extent` into `parts` inner lengths that divide it exactly, the innermost at most 64; the outermost length follows."""
    return Choice(name, factor_table(extent, parts), "tile", None, extent)


def uneven_tile_choice(name: str, extent: int, parts: int) -> Choice:
    """`tile_choice` with innermost lengths that need not divide: the last tile holds what is left, and the outer parts divide the number of tiles."""
    table = uneven_table(extent, parts)
    if np.array_equal(table, factor_table(extent, parts)):
        return tile_choice(name, extent, parts)
    exact = extent % table.prod(axis=1) == 0
    return Choice(name, table, "tile", np.where(exact, 1.0, UNEVEN_WEIGHT), extent)


def level_choice(name: str, values: tuple[int, ...], weights: tuple[float, ...] | None = None) -> Choice:
    """One number out of `values`."""
    table = np.asarray(values, dtype=np.int64).reshape(-1, 1)
    return Choice(name, table, "level", None if weights is None else np.asarray(weights, dtype=np.float64))


@lru_cache(maxsize=1 << 16)
def divisors(n: int) -> tuple[int, ...]:
    """All divisors, ascending; for numbers beyond MAX_TRIED squared, only those up to MAX_TRIED and their cofactors."""
    small = [d for d in range(1, min(isqrt(n), MAX_TRIED) + 1) if n % d == 0]
    return (*small, *(n // d for d in reversed(small) if d * d != n))


@lru_cache(maxsize=4096)
def factor_table(extent: int, parts: int) -> NDArray[np.int64]:
    """int64 [rows, parts]: ordered inner lengths whose product divides `extent`, innermost at most 64, in lexicographic order. Only the MAX_ROWS rows with
    the smallest products are kept.
    """
    return _read_only(_factor_rows(extent, parts, MAX_INNERMOST), parts)


@lru_cache(maxsize=4096)
def uneven_table(extent: int, parts: int) -> NDArray[np.int64]:
    """int64 [rows, parts]: `factor_table`, and rows whose innermost length is one of UNEVEN_LENGTHS that fills its tiles to LEAST_FILLING or more. Only the
    MAX_ROWS rows with the smallest products are kept.
    """
    rows = [tuple(row) for row in factor_table(extent, parts).tolist()]
    for length in UNEVEN_LENGTHS:
        count = -(-extent // length)
        if extent % length == 0 or length >= extent or extent < LEAST_FILLING * count * length:
            continue
        # A prime number of tiles cannot be divided further: one more, empty tile costs only a test.
        counts = (count, count + 1) if len(divisors(count)) == 2 and count > 3 else (count,)
        outer = {row for n in counts for row in _factor_rows(n, parts - 1, n)}
        rows += [(*row, length) for row in sorted(outer)]
    if len(rows) > MAX_ROWS:
        kept = set(sorted(range(len(rows)), key=lambda place: prod(rows[place]))[:MAX_ROWS])
        rows = [row for place, row in enumerate(rows) if place in kept]
    return _read_only(rows, parts)


def _factor_rows(n: int, parts: int, innermost: int) -> list[tuple[int, ...]]:
    """Lengths whose product divides `n`, the last at most `innermost`, in lexicographic order: at most MAX_ROWS, smallest products first."""
    rows: list[tuple[int, ...]] = []
    for product in divisors(n):
        rows += _ordered_factors(product, parts, innermost)
        if len(rows) >= MAX_ROWS:
            break
    return sorted(rows[:MAX_ROWS])


@lru_cache(maxsize=1 << 16)
def _ordered_factors(product: int, parts: int, innermost: int) -> tuple[tuple[int, ...], ...]:
    """All lengths with this product, the last at most `innermost`."""
    if parts == 0:
        return ((),) if product == 1 else ()
    if parts == 1:
        return ((product,),) if product <= innermost else ()
    return tuple((first, *rest) for first in divisors(product) for rest in _ordered_factors(product // first, parts - 1, innermost))


def _read_only(rows: Sequence[tuple[int, ...]], parts: int) -> NDArray[np.int64]:
    table = np.asarray(rows, dtype=np.int64).reshape(len(rows), parts)
    table.setflags(write=False)
    return table


@lru_cache(maxsize=4096)
def _near_neighbours(extent: int, parts: int) -> NDArray[np.int64]:
    return near_rows(uneven_table(extent, parts), extent)


def near_rows(table: NDArray[np.int64], extent: int) -> NDArray[np.int64]:
    """int64 [rows, m], padded with -1: for every row of lengths that cut `extent`, the nearest other rows, by the logarithms of all lengths."""
    outermost = np.ceil(extent / table.prod(axis=1))
    lengths = np.log2(np.column_stack([outermost, table]))
    nearest = [_nearest(lengths, row) for row in range(len(lengths))]
    result = np.full((len(lengths), min(MAX_NEIGHBOURS, len(lengths))), -1, dtype=np.int64)
    for row, places in enumerate(nearest):
        result[row, : len(places)] = places
    return result


def _nearest(lengths: NDArray[np.float64], row: int) -> NDArray[np.intp]:
    """The rows within NEAR, nearest first. If there are none, the nearest row, however far."""
    distance = np.zeros(len(lengths))
    for column in lengths.T:
        distance += np.abs(column - column[row])
    distance[row] = np.inf
    near = np.flatnonzero(distance <= NEAR + 1e-9)
    if not len(near) and len(lengths) > 1:
        near = np.array([np.argmin(distance)])
    return near[np.argsort(distance[near], kind="stable")][:MAX_NEIGHBOURS]


def _prime_factors(n: int) -> list[int]:
    """The distinct prime factors in ascending order; a cofactor without factors up to MAX_TRIED counts as prime."""
    found, p = [], 2
    while p * p <= n and p <= MAX_TRIED:
        if n % p == 0:
            found.append(p)
            while n % p == 0:
                n //= p
        p += 1
    return found + ([n] if n > 1 else [])


@lru_cache(maxsize=4096)
def _tile_neighbours(extent: int, parts: int) -> NDArray[np.int64]:
    table = factor_table(extent, parts)
    position = {tuple(row): k for k, row in enumerate(table.tolist())}
    primes = sorted(set(_prime_factors(extent)))
    lists = []
    for row in table.tolist():
        full = [extent // int(np.prod(row)), *row]
        lists.append(sorted({position[tuple(moved[1:])] for moved in _moves(full, primes) if tuple(moved[1:]) in position}))
    width = max((len(entry) for entry in lists), default=0)
    result = np.full((len(lists), max(width, 1)), -1, dtype=np.int64)
    for k, entry in enumerate(lists):
        result[k, : len(entry)] = entry
    return result


def _moves(full: list[int], primes: list[int]) -> list[list[int]]:
    moves = []
    for source in range(len(full)):
        for prime in primes:
            if full[source] % prime:
                continue
            for to in range(len(full)):
                if to != source:
                    moved = list(full)
                    moved[source] //= prime
                    moved[to] *= prime
                    moves.append(moved)
    return moves
