"""Pages that are looked up, against a table of the most recently used ones that follows every access."""

from __future__ import annotations

import itertools
from collections import OrderedDict

import numpy as np
import pytest

from ansor import te
from ansor.cost_model.buffer_features import Statement, statements_of
from ansor.cost_model.pages import AT_HAND, looked_up, touched_pages
from ansor.cost_model.touched import PAGE_BYTES, accesses
from ansor.ir.dag import Dag
from ansor.ir.interpreter import index_value
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Reorder

ELEMENT = 4


def sums_over_channels(channels: int, rows: int, columns: int, order: str) -> Statement:
    """Y[i, j] = sum of X[c, i, j] over c, with its loops in this order."""
    data, c = te.placeholder((channels, rows, columns), name="X"), te.reduce_axis(channels, "c")
    out = te.compute((rows, columns), lambda i, j: te.sum(data[c, i, j], axis=c), name="Y")
    sketch = Sketch(Dag([data, out])).then(Reorder("Y", tuple(order)))
    return statements_of(sketch.lower_row([]))[-1]


def addresses(statement: Statement) -> list[tuple[int, int]]:
    """The buffer and the page of each access, in program order."""
    nest, found = statement.nest, []
    for values in itertools.product(*(range(int(loop.var.extent)) for loop in nest.path)):
        at = dict(zip((loop.var for loop in nest.path), values, strict=True))
        for number, (buffer, [index]) in enumerate(accesses(nest.store).items()):
            strides = np.cumprod([1, *reversed(buffer.shape[1:])])[::-1]
            place = sum(index_value(one, {}, at) * int(stride) for one, stride in zip(index, strides, strict=True))
            found.append((number, place * ELEMENT // PAGE_BYTES))
    return found


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


@pytest.mark.parametrize(("channels", "rows", "columns", "order"), [
    (80, 16, 64, "ijc"),  # more channels than pages at hand: each step of the sum looks one up
    (80, 16, 64, "icj"),  # a row of each channel at a time
    (48, 16, 128, "ijc"),  # the pages of these channels stay while rows go on within them
    (48, 16, 128, "cij"),  # one channel after the other
])  # fmt: skip
def test_pages_looked_up_are_as_counted(channels: int, rows: int, columns: int, order: str) -> None:
    statement = sums_over_channels(channels, rows, columns, order)
    assert float(looked_up(statement)) == pytest.approx(misses(addresses(statement)), rel=0.1)


def test_no_page_is_looked_up_if_all_stay_at_hand() -> None:
    assert float(looked_up(sums_over_channels(32, 16, 64, "ijc"))) == 0.0


def test_pages_touched_are_as_counted() -> None:
    statement = sums_over_channels(20, 24, 128, "ijc")
    assert float(touched_pages(statement)[0]) == len(set(addresses(statement)))
