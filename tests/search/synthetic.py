"""Spaces with an analytic time, to test the search without lowering or measuring anything."""

import itertools
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ansor.ir.feature_rows import FeatureRows


def factor_table(extent: int, parts: int) -> NDArray[np.int64]:
    """All ordered factorisations of `extent` into `parts` factors, `[n, parts]`."""
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    tails = itertools.product(divisors, repeat=parts - 1)
    return np.array([(extent // int(np.prod(tail)), *tail) for tail in tails if extent % int(np.prod(tail)) == 0],
                    dtype=np.int64).reshape(-1, parts)


def one_factor_moves(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Values whose tuples differ in exactly two places (a factor moved from one part to another), -1 padded."""
    near = (table[:, None, :] != table[None, :, :]).sum(axis=2) == 2
    ratio = np.maximum(table[:, None, :], table[None, :, :]) // np.minimum(table[:, None, :], table[None, :, :])
    near &= ratio.max(axis=2) <= 3
    moves = np.full((len(table), max(int(near.sum(axis=1).max(initial=0)), 1)), -1, np.int64)
    for value, row in enumerate(near):
        found = np.flatnonzero(row)
        moves[value, : len(found)] = found
    return moves


@dataclass(eq=False)
class BowlSpace:
    """Time = floor + distance of the row to a hidden best row; with `even`, legal rows have an even sum."""

    extents: tuple[int, ...] = (12, 12, 12, 12)
    target: tuple[int, ...] = (7, 2, 9, 4)
    floor: float = 1.0
    even: bool = False
    name: str = "bowl"
    evaluated: int = 0
    value_weights: dict[int, list[float]] = field(default_factory=dict)

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.array(self.extents, np.int64)

    def weights(self, column: int) -> NDArray[np.float64] | None:
        return np.array(self.value_weights[column]) if column in self.value_weights else None

    def neighbours(self, column: int) -> NDArray[np.int64] | None:
        if column % 2:
            return None
        values = np.arange(self.extents[column])
        moves = np.stack([values - 1, values + 1], axis=1)
        return np.where(moves >= self.extents[column], -1, moves)

    def legal(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        return rows.sum(axis=1) % 2 == 0 if self.even else np.ones(len(rows), bool)

    def features(self, rows: NDArray[np.int64]) -> FeatureRows:
        self.evaluated += len(rows)
        wide = np.zeros((len(rows), 8), np.float32)
        wide[:, : rows.shape[1]] = rows
        wide[:, 7] = self.floor
        return FeatureRows(wide, np.arange(len(rows)), len(rows))

    def seconds(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        distance = np.abs(rows - np.array(self.target, np.int64)) / np.maximum(self.sizes, 1)
        return np.asarray((self.floor + 5 * distance.sum(axis=1)) * 1e-3, np.float64)


class MatmulSpace:
    """A rugged, cache-like time for a tiled matrix product: i and j in four parts, r in two, an unroll choice.

    `packed` is a second statement that costs a little and mends strided reads. Features are logarithms of footprints.
    """

    def __init__(self, n: int = 512, m: int = 512, k: int = 512, packed: bool = False, seed: int = 0) -> None:
        self.packed = packed
        self.name = f"matmul packed={packed}"
        self._tables = [factor_table(n, 4), factor_table(m, 4), factor_table(k, 2)]
        self._moves = [one_factor_moves(table) for table in self._tables]
        self._flops = 2.0 * n * m * k
        self._shape = (n, m, k)
        self._salt = seed

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.array([*(len(table) for table in self._tables), 4], np.int64)

    def weights(self, column: int) -> NDArray[np.float64] | None:
        return None

    def neighbours(self, column: int) -> NDArray[np.int64] | None:
        return self._moves[column] if column < 3 else None

    def legal(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        i, j = self._tables[0][rows[:, 0]], self._tables[1][rows[:, 1]]
        return (i[:, 3] * j[:, 3] <= 1024) & (i[:, 3] <= 64) & (j[:, 3] <= 64)

    def _quantities(self, rows: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
        i, j, r = (table[rows[:, column]].astype(np.float64) for column, table in enumerate(self._tables))
        inner_i, inner_j, inner_r = i[:, 3], j[:, 3], r[:, 1]
        middle_i, middle_j = i[:, 2] * inner_i, j[:, 2] * inner_j
        outer_i, outer_j = i[:, 1] * middle_i, j[:, 1] * middle_j
        return {
            "tile": inner_i * inner_j, "lanes": np.minimum(inner_j, 8), "rows": inner_i, "columns": inner_j,
            "inner_r": inner_r, "l1": 4 * (middle_i * inner_r + inner_r * middle_j + inner_i * inner_j),
            "l2": 4 * (outer_i * self._shape[2] + self._shape[2] * outer_j), "middle_i": middle_i, "middle_j": middle_j,
            "outer_i": outer_i, "outer_j": outer_j, "blocks": i[:, 0] * j[:, 0],
            "unroll": np.array([0.0, 16.0, 64.0, 512.0])[rows[:, 3]],
        }

    def features(self, rows: NDArray[np.int64]) -> FeatureRows:
        values = np.stack(list(self._quantities(rows).values()), axis=1)
        main = np.zeros((len(rows), 16), np.float32)
        main[:, : values.shape[1]] = np.log2(values + 1)
        main[:, 14] = 1.0
        main[:, 13] = self.packed
        if not self.packed:
            return FeatureRows(main, np.arange(len(rows)), len(rows))
        packing = np.zeros_like(main)
        packing[:, 15] = 1.0
        both = np.stack([main, packing], axis=1).reshape(-1, 16)
        return FeatureRows(both, np.repeat(np.arange(len(rows)), 2), len(rows))

    def seconds(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        q = self._quantities(rows)
        vectors = q["rows"] * np.ceil(q["columns"] / 8)
        compute = self._flops / (q["lanes"] * 12e9)
        compute *= np.where(vectors <= 12, 1 + 3 / vectors, 1.25 + 0.12 * (vectors - 12))
        compute *= np.where(q["unroll"] >= np.minimum(q["tile"], 512), 1.0, 1.4) * (1 + 4 / q["inner_r"])
        elements = self._flops / 2
        l1_miss = np.where(q["l1"] > 32e3, 4.0, 1.0) * (1 / q["middle_j"] + 1 / q["middle_i"])
        l2_miss = np.where(q["l2"] > 1e6, 3.0, 1.0) * (1 / q["outer_i"] + 1 / q["outer_j"])
        stride = 1.0 if self.packed else 2.5
        memory = elements * (l1_miss * 4 / 60e9 * stride + l2_miss * 4 / 15e9)
        mixed = (rows @ np.array([7919, 104729, 1299709, 15485863]) + self._salt) * 2654435761 % 2**32 / 2**32
        overhead = (4e-4 if self.packed else 0.0) + q["blocks"] * 2e-6
        total = np.maximum(compute, memory) + 0.3 * np.minimum(compute, memory) + overhead
        return np.asarray(total * (1 + 0.08 * mixed), np.float64)
