"""Mutation changes at least one choice of every row, in one pass over all rows and columns."""

import numpy as np
from numpy.typing import NDArray

from ansor.search.space import Rows
from ansor.search.tables import ChoiceTables


def redraw(tables: ChoiceTables, columns: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """A new value for each of these columns, by its sampling weights, `[m]`."""
    uniform = rng.random(len(columns))
    values = (uniform * tables.sizes[columns]).astype(np.int64)
    weighted = tables.weighted[columns]
    if weighted.any():
        chosen = columns[weighted]
        found = np.searchsorted(tables.cumulative, uniform[weighted] + chosen, side="right")
        values[weighted] = found - tables.offsets[chosen]
    return np.minimum(values, tables.sizes[columns] - 1)


def moved(tables: ChoiceTables, columns: NDArray[np.int64], values: NDArray[np.int64],
          rng: np.random.Generator) -> NDArray[np.int64]:
    """Move each value within its column: to a neighbour if it has any; else redraw it by its weights, or uniformly among other values without weights."""
    place = tables.offsets[columns] + values
    around = tables.neighbours
    degree = around.degree[place]
    uniform = rng.random(len(columns))
    others = np.maximum(tables.sizes[columns] - 1, 1)
    result = (values + 1 + (uniform * others).astype(np.int64)) % tables.sizes[columns]
    near = degree > 0
    result[near] = around.values[around.first[place[near]] + (uniform[near] * degree[near]).astype(np.int64)]
    weighted = ~near & tables.weighted[columns]
    if weighted.any():
        result[weighted] = redraw(tables, columns[weighted], rng)
    return result


def mutate(tables: ChoiceTables, rows: Rows, rng: np.random.Generator, extra: float = 0.5,
           jump: float = 0.1) -> Rows:
    """New rows `[n, columns]`, each with one choice moved, drawn in proportion to the logarithm of its size, and about `extra`
    more choices. With probability `jump`, a move goes anywhere in the table instead of to a neighbour. Rows may be illegal.
    """
    free = np.flatnonzero(tables.live > 1)
    if not len(free) or not len(rows):
        return rows.copy()
    pull = np.log2(tables.live[free])
    share = np.cumsum(pull) / pull.sum()
    chosen = rng.random((len(rows), len(free))) < extra / len(free)
    must = np.minimum(np.searchsorted(share, rng.random(len(rows)), side="right"), len(free) - 1)
    chosen[np.arange(len(rows)), must] = True
    row_index, free_index = np.nonzero(chosen)
    columns = free[free_index]
    values = rows[row_index, columns]
    far = rng.random(len(values)) < jump
    new = moved(tables, columns, values, rng)
    new[far] = redraw(tables, columns[far], rng)
    result = rows.copy()
    result[row_index, columns] = new
    return result
