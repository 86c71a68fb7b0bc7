"""The share of vectors in two cache lines, against counting them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ansor import te
from ansor.cost_model.alignment import across_lines
from ansor.cost_model.buffer_features import Statement, statements_of
from ansor.cost_model.touched import accesses
from ansor.ir.dag import Dag
from ansor.ir.interpreter import index_value
from ansor.ir.loops import Buffer
from ansor.schedule.choice import tile_choice
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Reorder, Split, Vectorize

LINE_BYTES = 64
ELEMENT = 4
VECTOR_BYTES = (16, 32, 64)


def copied(rows: int, columns: int, lanes: int) -> Sketch:
    """Y[i, j] = X[i, j] * 2 in vectors along j."""
    data = te.placeholder((rows, columns), name="X")
    out = te.compute((rows, columns), lambda i, j: data[i, j] * 2.0, name="Y")
    return Sketch(Dag([data, out])).then(Split("Y", "j", (lanes,), 2), Reorder("Y", ("i", "j_0", "j_1")), Vectorize("Y", "j_1"))


def transposed(rows: int, columns: int) -> Sketch:
    """Y[i, j] = X[j, i]: what is read lies a row apart."""
    data = te.placeholder((columns, rows), name="X")
    out = te.compute((rows, columns), lambda i, j: data[j, i] * 2.0, name="Y")
    return Sketch(Dag([data, out])).then(Vectorize("Y", "j"))


def only_statement(sketch: Sketch) -> Statement:
    [statement] = statements_of(sketch.lower_row([]))
    return statement


def share(statement: Statement, buffer: Buffer, vector_bytes: int) -> float:
    return float(across_lines(statement.nest, statement.footprints[buffer], ELEMENT, vector_bytes, LINE_BYTES))


def counted(statement: Statement, buffer: Buffer, vector_bytes: int) -> float:
    """Over all iterations in which a vector begins: those whose vector reaches into the next line."""
    nest = statement.nest
    lanes, [index] = nest.path[-1], accesses(nest.store)[buffer]
    width = min(int(lanes.var.extent) * ELEMENT, vector_bytes)
    strides = np.cumprod([1, *reversed(buffer.shape[1:])])[::-1]
    across: list[bool] = []
    for values in itertools.product(*(range(int(loop.var.extent)) for loop in nest.path)):
        at = dict(zip((loop.var for loop in nest.path), values, strict=True))
        if at[lanes.var] % (width // ELEMENT) == 0:
            first = sum(index_value(one, {}, at) * int(stride) for one, stride in zip(index, strides, strict=True)) * ELEMENT
            across.append(first % LINE_BYTES + width > LINE_BYTES)
    return float(np.mean(across))


@pytest.mark.parametrize("vector_bytes", VECTOR_BYTES)
@pytest.mark.parametrize(("columns", "lanes"), [(64, 16), (48, 16), (40, 8), (24, 8), (56, 8), (36, 4), (80, 16), (16, 16), (72, 8)])
def test_rows_of_all_lengths_are_counted_right(columns: int, lanes: int, vector_bytes: int) -> None:
    statement = only_statement(copied(16, columns, lanes))
    for buffer in statement.footprints:
        assert share(statement, buffer, vector_bytes) == counted(statement, buffer, vector_bytes), buffer.name


@pytest.mark.parametrize("vector_bytes", VECTOR_BYTES)
def test_no_vector_is_read_where_neighbours_lie_apart(vector_bytes: int) -> None:
    statement = only_statement(transposed(16, 24))
    written, read = statement.footprints
    assert share(statement, read, vector_bytes) == 0.0
    assert share(statement, written, vector_bytes) == counted(statement, written, vector_bytes)


def test_rows_of_an_odd_length_are_at_every_place() -> None:
    statement = only_statement(copied(16, 49, 16))
    assert share(statement, statement.nest.store.buffer, 64) == pytest.approx(15 / 16, abs=1 / 16)


def test_a_population_has_what_its_rows_have() -> None:
    data = te.placeholder((6, 48), name="X")
    out = te.compute((6, 48), lambda i, j: data[i, j] * 2.0, name="Y")
    sketch = Sketch(Dag([data, out])).then(
        Split("Y", "j", "j", 2), Reorder("Y", ("i", "j_0", "j_1")), Vectorize("Y", "j_1"), choices=(tile_choice("j", 48, 1),)
    )
    rows = np.arange(sketch.sizes[0])[:, None]
    [together] = statements_of(sketch.lower_rows(rows))
    values = across_lines(together.nest, together.footprints[together.nest.store.buffer], ELEMENT, 64, LINE_BYTES)
    found = np.broadcast_to(np.asarray(values), len(rows)).tolist()
    for value, row in zip(found, rows.tolist(), strict=True):
        [alone] = statements_of(sketch.lower_row(row))
        assert value == share(alone, alone.nest.store.buffer, 64)
