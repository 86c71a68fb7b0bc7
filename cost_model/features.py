"""From a lowered population to feature rows. `extract` is the whole interface; `ansor.cost_model.feature_table` says what the columns mean.

Everything is arithmetic on float64 rows [n] over the programs, and nothing branches on a value in a way that changes a number: the features of a program
are the same bits whether it is lowered alone or among ten thousand.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.annotations import FLAGS, Stages, annotation_columns, stages_of
from ansor.cost_model.buffer_features import Statement, allocation, block, statements_of
from ansor.cost_model.feature_table import COLUMN, CURVE_POINTS, FEATURES, WIDTH
from ansor.cost_model.intensity import intensity_curve
from ansor.cost_model.nest import Row
from ansor.cost_model.operation_counts import operation_counts
from ansor.ir.feature_rows import FeatureRows
from ansor.ir.loops import Loops

CACHE_LINE_BYTES = 64

_PLAIN = tuple(feature.plain for feature in FEATURES)
_CURVE = COLUMN["arith_intensity_curve_0"]
_TILE = 128  # programs turned from columns into rows at a time: a tile of all columns stays in the cache


def extract(loops: Loops, count: int = 1, *, cache_line_bytes: int = CACHE_LINE_BYTES) -> FeatureRows:
    """One row of `WIDTH` features per statement of each of `count` programs, statements in program order.

    loops: one program (extents are ints, count 1) or a population that shares a structure (extents are ints or int64 [count]).
    """
    return feature_rows(statements_of(loops, count, cache_line_bytes), stages_of(loops), count)


def feature_rows(program: list[Statement], stages: Stages, count: int) -> FeatureRows:
    """`extract` where the statements are there already."""
    columns = np.zeros((len(program), WIDTH, count), dtype=np.float32)
    for k, statement in enumerate(program):
        _fill(columns[k], statement, program, stages)
    segment = np.repeat(np.arange(count, dtype=np.int64), len(program))
    return FeatureRows(_as_rows(columns), segment, count)


def _as_rows(columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """[statements, width, n] -> [n * statements, width]."""
    statements, width, count = columns.shape
    rows = np.empty((count, statements, width), dtype=np.float32)
    for start in range(0, count, _TILE):
        rows[start : start + _TILE] = columns[:, :, start : start + _TILE].transpose(2, 0, 1)
    return rows.reshape(count * statements, width)


def _fill(columns: NDArray[np.float32], statement: Statement, program: list[Statement], stages: Stages) -> None:
    nest = statement.nest
    counts, operations = operation_counts(nest)
    _put(columns, {name: amount * nest.iterations for name, amount in counts.items()})
    for prefix in FLAGS:
        _put(columns, annotation_columns(nest, prefix, stages))
    columns[COLUMN["blockIdx_x_len"] : COLUMN["vthread_len"] + 1] = 1.0
    for k, buffer in enumerate(statement.blocks):
        _put(columns, block(statement, buffer, program), f"B{k}.")
    columns[_CURVE : _CURVE + CURVE_POINTS] = intensity_curve(nest, statement.bytes, operations)
    size, elements, outer = allocation(statement)
    _put(columns, {"alloc_size": size, "alloc_prod": elements, "alloc_outer_prod": outer, "alloc_inner_prod": nest.iterations / outer})
    limit: NDArray[np.int64] = np.zeros(nest.count, dtype=np.int64)
    for loop in nest.path:
        limit = np.maximum(limit, loop.unroll_limit)
    _put(columns, {"outer_prod": nest.iterations, "num_loops": nest.real.sum(axis=0).astype(np.float64), "auto_unroll_max_step": limit.astype(np.float64)})


def _put(columns: NDArray[np.float32], values: Mapping[str, Row], prefix: str = "") -> None:
    """Write columns, each on its scale."""
    number = np.empty(columns.shape[1])
    for name, value in values.items():
        column = COLUMN[prefix + name]
        if _PLAIN[column]:
            columns[column] = value
        else:
            # Always from the same kind of memory: NumPy's logarithm may round differently for other strides.
            np.add(value, 1.0, out=number)
            columns[column] = np.log2(number)
