"""What tiles that do not divide leave over, against counting iterations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ansor import te
from ansor.cost_model.buffer_features import statements_of
from ansor.cost_model.nest import Nest
from ansor.cost_model.remainders import Remainders, remainders_of
from ansor.ir.dag import Dag
from ansor.ir.interpreter import index_value
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Reorder, Split
from ansor.search.derive import spaces
from ansor.targets.base import parse_target
from ansor.te import workloads


def doubled(length: int, *tiles: int) -> Nest:
    data = te.placeholder((length,), name="X")
    out = te.compute((length,), lambda i: data[i] * 2.0, name="Y")
    return only_nest(Sketch(Dag([data, out])).then(Split("Y", "i", tiles, len(tiles) + 1)))


def matmul(rows: int, columns: int, inner: int, tiles: tuple[int, int, int]) -> Nest:
    a, b = te.placeholder((rows, inner), name="A"), te.placeholder((inner, columns), name="B")
    r = te.reduce_axis((0, inner), name="k")
    out = te.compute((rows, columns), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return only_nest(Sketch(Dag([a, b, out])).then(
        Split("C", "i", tiles[:1], 2), Split("C", "j", tiles[1:2], 2), Split("C", "k", tiles[2:], 2), Reorder("C", ("i_0", "j_0", "k_0", "k_1", "i_1", "j_1"))
    ))  # fmt: skip


def only_nest(sketch: Sketch) -> Nest:
    [statement] = statements_of(sketch.lower_row([]))
    return statement.nest


def excess_counted(nest: Nest) -> float:
    """log2 of all iterations by those that every guard lets through."""
    every = inside = 0
    for values in itertools.product(*(range(int(loop.var.extent)) for loop in nest.path)):
        at = dict(zip((loop.var for loop in nest.path), values, strict=True))
        every += 1
        inside += all(guard.high is None or index_value(guard.value, {}, at) < int(guard.high) for guard in nest.store.guards)
    return math.log2(every / inside)


@pytest.mark.parametrize(("length", "tiles"), [(49, (16,)), (49, (6, 8)), (100, (3, 4, 8)), (7, (16,)), (1, (4,))])
def test_iterations_beyond_the_end_of_an_axis(length: int, tiles: tuple[int, ...]) -> None:
    nest = doubled(length, *tiles)
    assert remainders_of(nest).excess == pytest.approx(excess_counted(nest))


def test_the_last_tile_and_the_last_vectors_of_an_axis() -> None:
    found = remainders_of(doubled(50, 2, 16))  # two tiles of 32; 50 = 32 + 16 + 2
    assert found.inner_excess == pytest.approx(math.log2(64 / 50)) and found.cut == pytest.approx(18 / 50)


def test_of_several_axes_excesses_add_up_and_the_greatest_cut_counts() -> None:
    nest = matmul(10, 9, 7, (4, 4, 4))  # the rest of k is a guard, too
    found = remainders_of(nest)
    assert found.excess == pytest.approx(excess_counted(nest))
    assert found.inner_excess == pytest.approx(math.log2(12 / 10 * 12 / 9 * 8 / 7))
    assert found.cut == pytest.approx(3 / 7)


def test_nothing_is_left_over_where_tiles_divide() -> None:
    assert _numbers(remainders_of(matmul(8, 8, 8, (4, 2, 8)))) == [0.0, 0.0, 0.0]


def _numbers(remainders: Remainders) -> list[float]:
    return [float(remainders.excess), float(remainders.inner_excess), float(remainders.cut)]


def test_a_population_has_what_its_rows_have() -> None:
    rng = np.random.default_rng(0)
    uneven = 0
    for sketch in spaces(Dag(workloads.matmul(50, 51, 35)), parse_target("cpu -mcpu=znver3 -threads=1")):
        rows = np.stack([rng.integers(0, size, 12) for size in sketch.sizes], axis=1)
        for k, statement in enumerate(statements_of(sketch.lower_rows(rows))):
            found = remainders_of(statement.nest)
            together = np.stack([np.broadcast_to(one, 12) for one in (found.excess, found.inner_excess, found.cut)], axis=1)
            alone = [_numbers(remainders_of(statements_of(sketch.lower_row(row))[k].nest)) for row in rows.tolist()]
            assert together.tolist() == alone
            uneven += int((together > 0).any())
    assert uneven
