"""Pages that are looked up, against a table of the most recently used ones that follows every access."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from typing import cast

import numpy as np
import pytest

from ansor import te
from ansor.cost_model.analytic import estimate, first_cache
from ansor.cost_model.buffer_features import Statement, statements_of
from ansor.cost_model.feature_table import COLUMN
from ansor.cost_model.features import extract
from ansor.cost_model.pages import AT_HAND, LOOK_UP, looked_up, touched_pages
from ansor.cost_model.spread import PAGE_BYTES
from ansor.cost_model.touched import accesses
from ansor.ir.dag import Dag
from ansor.ir.linear import Var
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Reorder
from ansor.targets.base import parse_target
from ansor.te.tensor import Tensor

CORE = parse_target("cpu -mcpu=x86-64-v3 -threads=1")
ELEMENT = 4


def ordered(tensors: list[Tensor], order: str) -> Statement:
    """The last statement, with its loops in this order."""
    sketch = Sketch(Dag(tensors)).then(Reorder(tensors[-1].name, tuple(order)))
    return statements_of(sketch.lower_row([]))[-1]


def sums_over_channels(channels: int, rows: int, columns: int, order: str) -> Statement:
    """Y[i, j] = sum of X[c, i, j] over c."""
    return ordered(channel_sums(channels, rows, columns), order)


def channel_sums(channels: int, rows: int, columns: int) -> list[Tensor]:
    """Its declaration."""
    data, c = te.placeholder((channels, rows, columns), name="X"), te.reduce_axis(channels, "c")
    return [data, te.compute((rows, columns), lambda i, j: te.sum(data[c, i, j], axis=c), name="Y")]


def pointwise(channels: int, outputs: int, size: int, order: str) -> Statement:
    """Y[o, i, j] = sum of X[c, i, j] * W[o, c] over c."""
    data, weight, c = te.placeholder((channels, size, size), name="X"), te.placeholder((outputs, channels), name="W"), te.reduce_axis(channels, "c")
    return ordered([data, weight, te.compute((outputs, size, size), lambda o, i, j: te.sum(data[c, i, j] * weight[o, c], axis=c), name="Y")], order)


def columns_of_five(rows: int, columns: int, order: str) -> Statement:
    """Y[i, j] = X[i, j] + ... + X[i + 4, j]."""
    data = te.placeholder((rows + 4, columns), name="X")
    return ordered([data, te.compute((rows, columns), lambda i, j: sum((data[i + k, j] for k in range(1, 5)), start=data[i, j]), name="Y")], order)


def gram(rows: int, columns: int, order: str) -> Statement:
    """Y[i, j] = sum of X[i, k] * X[j, k] over k."""
    data, k = te.placeholder((rows, columns), name="X"), te.reduce_axis(columns, "k")
    return ordered([data, te.compute((rows, rows), lambda i, j: te.sum(data[i, k] * data[j, k], axis=k), name="Y")], order)


def pages_in_order(statement: Statement) -> list[tuple[int, int]]:
    """The buffer and the page of each access, in program order."""
    loops = [loop.var for loop in statement.nest.path]
    values = dict(zip(loops, np.indices([int(var.extent) for var in loops]).reshape(len(loops), -1), strict=True))
    found = []
    for number, (buffer, indices) in enumerate(accesses(statement.nest.store).items()):
        strides = np.cumprod([1, *reversed(buffer.shape[1:])])[::-1]
        for index in indices:
            parts = [one.const + sum(step * values[cast("Var", atom)] for atom, step in one.terms) for one in index]
            place = sum(part * stride for part, stride in zip(parts, strides, strict=True))
            found.append([(number, page) for page in (place * ELEMENT // PAGE_BYTES).tolist()])
    return [*itertools.chain.from_iterable(zip(*found, strict=True))]


def misses(pages: list[tuple[int, int]]) -> int:
    """How many are not among the most recent ones."""
    recent: OrderedDict[tuple[int, int], None] = OrderedDict()
    count = 0
    for page in pages:
        count += page not in recent
        recent[page] = None
        recent.move_to_end(page)
        if len(recent) > AT_HAND:
            recent.popitem(last=False)
    return count


STATEMENTS = {
    "more channels than pages at hand: each step of the sum looks one up": sums_over_channels(80, 16, 64, "ijc"),
    "a row of each channel at a time": sums_over_channels(80, 16, 64, "icj"),
    "the pages of these channels stay while rows go on within them": sums_over_channels(48, 16, 128, "ijc"),
    "one channel after the other": sums_over_channels(48, 16, 128, "cij"),
    "the channels and the result fill the table": sums_over_channels(63, 8, 128, "ijc"),
    "one channel too many": sums_over_channels(64, 8, 128, "ijc"),
    "a loop between that does not move the image": pointwise(48, 16, 32, "iojc"),
    "no pages stay for the loop over outputs": pointwise(80, 12, 32, "ijoc"),
    "two ways through one buffer": gram(48, 1024, "ijk"),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_pages_looked_up_are_as_counted(name: str) -> None:
    pages = pages_in_order(STATEMENTS[name])
    expected = 0 if len(set(pages)) <= AT_HAND else misses(pages)  # of a program that runs again and again
    assert float(looked_up(STATEMENTS[name])) == pytest.approx(expected, rel=0.2)


def test_no_page_is_looked_up_if_all_stay_at_hand() -> None:
    assert float(looked_up(sums_over_channels(63, 8, 128, "ijc"))) == 0.0
    assert float(looked_up(sums_over_channels(64, 8, 128, "ijc"))) > 0.0


def test_pages_touched_are_as_counted() -> None:
    for statement in (sums_over_channels(20, 24, 128, "ijc"), columns_of_five(40, 1024, "ij"), gram(12, 1024, "ijk")):
        assert float(touched_pages(statement)[0]) == len(set(pages_in_order(statement)))


def test_columns_say_how_many_pages_a_tile_touches_and_what_it_takes_to_look_them_up() -> None:
    sketch = Sketch(Dag(channel_sums(80, 16, 64))).then(Reorder("Y", ("i", "j", "c")))
    row = extract(sketch.lower_row([]), core=CORE).rows[-1]
    statement = statements_of(sketch.lower_row([]), first_cache(CORE))[-1]
    total = estimate(statement, CORE)
    cycles = float(total.instructions) + float(sum(total.transfers, start=0.0))
    assert 2.0 ** float(row[COLUMN["pages_of_a_run"]]) == pytest.approx(81)  # 80 of the image, and one of the result
    assert 2.0 ** float(row[COLUMN["share_of_pages"]]) == pytest.approx(LOOK_UP * float(looked_up(statement)) / cycles, rel=1e-3)
