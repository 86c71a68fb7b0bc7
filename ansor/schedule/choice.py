"""Choices: the open numbers of a sketch, each with a finite table of legal values."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

MAX_INNERMOST = 64


@dataclass(frozen=True, eq=False)
class Choice:
    """One open number (or tuple of numbers).

    name: unique within a sketch; steps refer to it.
    table: int64 [values, parts]; a gene is a row of it.
    weights: float64 [values], how likely sampling takes each value; None = uniform.
    kind: `tile` (neighbours move one factor), or `level` (an ordered amount).
    """

    name: str
    table: NDArray[np.int64]
    kind: str = "level"
    weights: NDArray[np.float64] | None = None
    extent: int = field(default=0)

    @property
    def size(self) -> int:
        """Number of legal values."""
        return int(self.table.shape[0])

    @cached_property
    def neighbours(self) -> NDArray[np.int64] | None:
        """int64 [values, m]: the values that differ by moving one prime factor between two parts, -1 padded; None for levels."""
        return _tile_neighbours(self.extent, self.table.shape[1]) if self.kind == "tile" else None

    def index_of(self, value: tuple[int, ...]) -> int | None:
        """The gene that stands for `value`, None when it is not legal."""
        found = np.flatnonzero((self.table == np.asarray(value, dtype=np.int64)).all(axis=1))
        return int(found[0]) if found.size else None


def tile_choice(name: str, extent: int, parts: int) -> Choice:
    """All ways to cut `extent` into `parts` inner lengths (outermost left over) with exact divisors, the innermost at most 64."""
    return Choice(name, factor_table(extent, parts), "tile", None, extent)


def level_choice(name: str, values: tuple[int, ...], weights: tuple[float, ...] | None = None) -> Choice:
    """One number out of `values`."""
    table = np.asarray(values, dtype=np.int64).reshape(-1, 1)
    return Choice(name, table, "level", None if weights is None else np.asarray(weights, dtype=np.float64))


def divisors(n: int) -> list[int]:
    """All divisors, ascending."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return small + [n // d for d in reversed(small) if d * d != n]


@lru_cache(maxsize=4096)
def factor_table(extent: int, parts: int) -> NDArray[np.int64]:
    """int64 [rows, parts]: ordered inner lengths whose product divides `extent`, innermost at most 64, in lexicographic order."""
    rows: list[tuple[int, ...]] = [()]
    remaining = [extent]
    for part in range(parts):
        new_rows, new_remaining = [], []
        for row, rest in zip(rows, remaining, strict=True):
            for d in divisors(rest):
                if part == parts - 1 and d > MAX_INNERMOST:
                    break
                new_rows.append((*row, d))
                new_remaining.append(rest // d)
        rows, remaining = new_rows, new_remaining
    table = np.asarray(rows, dtype=np.int64).reshape(len(rows), parts)
    table.setflags(write=False)
    return table


def _prime_factors(n: int) -> list[int]:
    found, p = [], 2
    while p * p <= n:
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
    primes = _prime_factors(extent)
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
