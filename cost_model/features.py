"""Extracts feature rows from a lowered population. `extract` is the whole interface; `ansor.cost_model.feature_table` explains the columns.

Everything is arithmetic on float64 rows [n] over the programs, and nothing branches on a value in a way that changes a number: the features of a program
are the same bits whether it is lowered alone or among ten thousand. So the arithmetic can also be recorded: `statement_columns` are the columns of one
statement, whatever the numbers of the program are. Two things that no rule of the package makes are exceptions: unrolled loops whose length a choice decides
(`copies.shares`), and several divisions that are equal only for some choices (`touched.footprint`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.analytic import Core, Estimate, estimate, first_cache
from ansor.cost_model.annotations import FLAGS, Stages, annotation_columns, stages_of
from ansor.cost_model.buffer_features import Statement, allocation, own_block, reuse_block, statements_of
from ansor.cost_model.cache_sets import FirstCache
from ansor.cost_model.feature_table import COLUMN, FEATURES, WIDTH
from ansor.cost_model.intensity import intensity_curve
from ansor.cost_model.machine_features import machine_columns
from ansor.cost_model.operation_counts import operation_counts
from ansor.ir.columns import Int, Row, larger, log2_of_one_more, row
from ansor.ir.feature_rows import FeatureRows
from ansor.ir.loops import Loops

_PLAIN = tuple(feature.plain for feature in FEATURES)
_CURVE = COLUMN["arith_intensity_curve_0"]
_DEVICE = range(COLUMN["blockIdx_x_len"], COLUMN["vthread_len"] + 1)


def extract(loops: Loops, count: int = 1, *, cache_line_bytes: int = 64, core: Core | None = None) -> FeatureRows:
    """One row of `WIDTH` features per statement of each of `count` programs, statements in program order.

    loops: one program (extents are ints, count 1) or a population that shares a structure (extents are ints or int64 [count]). A core has its own lines.
    """
    program, stages = statements_of(loops, FirstCache(cache_line_bytes) if core is None else first_cache(core)), stages_of(loops)
    rows = np.zeros((count, len(program), WIDTH), dtype=np.float32)
    for k, statement in enumerate(program):
        for column, value in statement_columns(statement, program, stages, None if core is None else (estimate(statement, core), core)).items():
            rows[:, k, column] = value
    return FeatureRows(rows.reshape(-1, WIDTH), segments(count, len(program)), count)


def segments(count: int, statements: int) -> NDArray[np.int64]:
    """The program of each row."""
    return np.repeat(np.arange(count, dtype=np.int64), statements)


def statement_columns(statement: Statement, program: Sequence[Statement], stages: Stages, machine: tuple[Estimate, Core] | None) -> dict[int, Row]:
    """Column -> scaled value, of a statement of `program`; omitted columns are 0, such as the machine's without an estimate."""
    columns, operations = statement.once("own columns", lambda: _own_columns(statement, stages))
    columns = dict(columns)
    for k, buffer in enumerate(statement.blocks):
        columns |= _scaled(reuse_block(statement, buffer, program), f"B{k}.")
    if machine is not None:
        columns |= _scaled(machine_columns(statement, machine[0], operations, machine[1]))
    return columns


def _own_columns(statement: Statement, stages: Stages) -> tuple[dict[int, Row], float]:
    """The columns that depend neither on the rest of the program nor on the machine, and arithmetic operations per iteration."""
    nest = statement.nest
    counts, operations = operation_counts(nest)
    columns = _scaled({name: amount * nest.iterations for name, amount in counts.items()})
    for prefix in FLAGS:
        columns |= _scaled(annotation_columns(nest, prefix, stages))
    columns |= dict.fromkeys(_DEVICE, 1.0)
    columns |= {_CURVE + k: value for k, value in enumerate(intensity_curve(nest, statement.bytes, operations))}
    size, elements, outer = allocation(statement)
    columns |= _scaled({"alloc_size": size, "alloc_prod": elements, "alloc_outer_prod": outer, "alloc_inner_prod": nest.iterations / outer})
    limit: Int = 0
    for loop in nest.path:
        limit = larger(limit, loop.runs.unroll_limit)
    loops: Row = sum((row(real) for real in nest.real), start=0.0)
    for k, buffer in enumerate(statement.blocks):
        columns |= _scaled(own_block(statement, buffer), f"B{k}.")
    return columns | _scaled({"outer_prod": nest.iterations, "num_loops": loops, "auto_unroll_max_step": row(limit)}), operations


def _scaled(values: Mapping[str, Row], prefix: str = "") -> dict[int, Row]:
    """Columns by number, on the scale of the table."""
    return {(column := COLUMN[prefix + name]): value if _PLAIN[column] else log2_of_one_more(value) for name, value in values.items()}
