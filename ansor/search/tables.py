"""The choice tables of a space, laid out flat so that sampling and mutation are gathers over all rows and columns at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.search.space import Rows, Space

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """tiled: `[columns]`, whether a column has a table of neighbours.

    The neighbours of the value at place p of all values are the `degree[p]` entries of `values` from `first[p]` on.
    """

    tiled: NDArray[np.bool_]
    first: NDArray[np.int64]
    degree: NDArray[np.int64]
    values: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ChoiceTables:
    """What sampling and mutation need from a `Space`, as arrays over all values of all columns.

    Value v of column c is at place `offsets[c] + v`. `cumulative` there is c + the share of sampling weight up to and including v.
    A value with degree 0 in `neighbours` moves to any other value.
    """

    sizes: NDArray[np.int64]
    live: NDArray[np.int64]  # [columns]: the number of values with a weight
    offsets: NDArray[np.int64]
    weighted: NDArray[np.bool_]  # [columns]
    cumulative: NDArray[np.float64]
    neighbours: Neighbours
    multipliers: NDArray[np.uint64]  # [columns], for `keys`

    @property
    def columns(self) -> int:
        """Number of choices."""
        return len(self.sizes)

    @property
    def programs(self) -> float:
        """Number of rows, legal or not; a float, as it may overflow an integer."""
        return float(np.prod(self.sizes.astype(np.float64)))

    def keys(self, rows: Rows) -> NDArray[np.uint64]:
        """A 64-bit key per row, `[n]`, the same in every process. Equal rows have equal keys; others practically never."""
        return rows.astype(np.uint64) @ self.multipliers


def choice_tables(space: Space) -> ChoiceTables:
    """Read the tables of a space once. Raises ValueError for an empty choice, bad weights or neighbours out of range."""
    sizes = np.asarray(space.sizes, dtype=np.int64)
    if sizes.ndim != 1 or (sizes < 1).any():
        raise ValueError(f"sketch {space.name}: each choice needs a value; found sizes {sizes.tolist()}: drop the sketch")
    columns = len(sizes)
    weights = [_checked_weights(space, column, int(size)) for column, size in enumerate(sizes)]
    moves = [_checked_neighbours(space, column, int(size)) for column, size in enumerate(sizes)]
    cumulative = [
        column + _shares(weight, int(size)) for column, (weight, size) in enumerate(zip(weights, sizes, strict=True))
    ]
    return ChoiceTables(
        sizes=sizes,
        live=np.array([size if weight is None else np.count_nonzero(weight) for weight, size in zip(weights, sizes, strict=True)], np.int64),
        offsets=np.cumsum(sizes) - sizes,
        weighted=np.array([weight is not None for weight in weights], dtype=bool),
        cumulative=np.concatenate([np.zeros(0), *cumulative]),
        neighbours=_neighbours(moves),
        multipliers=_mixed(np.arange(1, columns + 1, dtype=np.uint64)),
    )


def _neighbours(moves: Sequence[NDArray[np.int64]]) -> Neighbours:
    """The neighbours from one table per column."""
    degree = np.concatenate([np.zeros(0, np.int64), *((move >= 0).sum(axis=1) for move in moves)])
    values = np.concatenate([np.zeros(0, np.int64), *(move[move >= 0] for move in moves)])
    return Neighbours(np.array([move.shape[1] > 0 for move in moves], dtype=bool), np.cumsum(degree) - degree, degree, values)


def all_rows(sizes: NDArray[np.int64]) -> Rows:
    """Every row of a small space, `[prod(sizes), columns]`."""
    if not len(sizes):
        return np.zeros((1, 0), np.int64)
    return np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), tuple(sizes.tolist())), axis=1).astype(np.int64)


def _checked_weights(space: Space, column: int, size: int) -> NDArray[np.float64] | None:
    weight = space.weights(column)
    if weight is None:
        return None
    array = np.asarray(weight, dtype=np.float64)
    if array.shape != (size,) or not np.isfinite(array).all() or (array < 0).any() or array.sum() <= 0:
        raise ValueError(f"sketch {space.name}, choice {column}: {size} values need as many weights, none negative and "
                         f"one positive; found {array.tolist()}: fix `weights`")
    return array


def _checked_neighbours(space: Space, column: int, size: int) -> NDArray[np.int64]:
    move = space.neighbours(column)
    if move is None:
        return np.zeros((size, 0), np.int64)
    array = np.asarray(move, dtype=np.int64)
    if array.ndim != 2 or len(array) != size or (array >= size).any():
        raise ValueError(f"sketch {space.name}, choice {column}: {size} values need a table [size, m] of neighbours below "
                         f"{size}; found shape {array.shape}, largest {array.max(initial=-1)}: fix `neighbours`")
    return array


def _shares(weight: NDArray[np.float64] | None, size: int) -> NDArray[np.float64]:
    if weight is None:
        return np.arange(1, size + 1, dtype=np.float64) / size
    shares: NDArray[np.float64] = np.cumsum(weight) / weight.sum()
    shares[np.flatnonzero(weight)[-1]:] = 1.0  # not 0.9999…, so that every draw below 1 finds a value, and never a weightless one
    return shares


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """splitmix64, made odd: multipliers without structure, so that small differences of rows do not cancel out."""
    mixed = numbers * _GOLDEN
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return (mixed ^ (mixed >> np.uint64(31))) | np.uint64(1)
