"""Kernels visit what loops visit; regions move what is in them, with few instructions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ansor.errors import ScheduleError
from ansor.vta.configuration import Memory
from ansor.vta.instructions import Padding, Rows
from ansor.vta.kernels import APART, Kernel, StridedLoop, joined, kernels_of
from ansor.vta.transfers import Extent, loads, stores
from ansor.vta.uop_counts import instructions_of, uops_of


def visits(kernel: Kernel) -> list[tuple[int, ...]]:
    """In order."""
    found = []
    for o, i in itertools.product(range(kernel.outer.iterations), range(kernel.inner.iterations)):
        for uop in kernel.uops:
            found.append(tuple(getattr(uop, name) + o * getattr(kernel.outer, name) + i * getattr(kernel.inner, name) for name in ("dst", "src", "wgt")))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_kernels_visit_what_loops_visit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    walks = [StridedLoop(*map(int, (rng.integers(1, 5), *rng.integers(0, 9, 3)))) for _ in range(int(rng.integers(0, 5)))]
    walks += [StridedLoop(6, 4, 0, 1), StridedLoop(4, 1, 0, 0)][: seed % 3]
    right = []
    for place in itertools.product(*(range(walk.extent) for walk in walks)):
        right.append(tuple(start + sum(at * walk.steps[k] for at, walk in zip(place, walks, strict=True)) for k, start in enumerate((1, 2, 3))))
    kernels = kernels_of((1, 2, 3), tuple(walks))
    assert sorted(visit for kernel in kernels for visit in visits(kernel)) == sorted(right)


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_written_again_at_once(seed: int) -> None:
    """Where loops that move the destination give each element its own; the counts in columns are no fewer than what is there."""
    rng = np.random.default_rng(seed)
    spatial, reduced = [int(one) for one in rng.integers(1, 9, 3)], [int(one) for one in rng.integers(1, 5, 3)]
    walks = [StridedLoop(extent, 0, *map(int, rng.integers(1, 9, 2))) for extent in reduced]
    for place, extent in enumerate(spatial):
        walks.append(StridedLoop(extent, math.prod(spatial[place + 1 :]), int(rng.integers(0, 9)), int(rng.integers(0, 9))))
    kernels = kernels_of((1, 2, 3), tuple(walks))
    for kernel in kernels:
        written = [dst for dst, _, _ in visits(kernel)]
        assert all(dst not in written[max(0, place - APART + 1) : place] for place, dst in enumerate(written))
    assert sum(len(visits(kernel)) for kernel in kernels) == math.prod((*spatial, *reduced))
    assert len(kernels) == instructions_of(math.prod(spatial), math.prod((*spatial, *reduced)))
    assert sum(len(kernel.uops) for kernel in kernels) <= uops_of(spatial, reduced)


def test_loops_that_go_on_are_one() -> None:
    assert joined([StridedLoop(3, 20), StridedLoop(1, 7), StridedLoop(5, 4), StridedLoop(4, 1)]) == [StridedLoop(60, 1)]
    assert len(kernels_of((0, 0, 0), (StridedLoop(3, 20, 1), StridedLoop(5, 4, 9), StridedLoop(4, 1, 5)))[0].uops) == 3


def test_regions_have_few_instructions() -> None:
    (whole,) = loads(Memory.INP, 5, 100, [Extent(4, 64, 64), Extent(8, 8, 8), Extent(8, 1, 1)])
    assert whole.rows.count == 256 and whole.sram_base == 5 and whole.dram_base == 100
    tile = loads(Memory.INP, 0, 10, [Extent(2, 100, 12), Extent(3, 10, 4, 0, 0), Extent(4, 1, 1)])
    assert [(one.sram_base, one.dram_base, one.rows) for one in tile] == [(0, 10, Rows(3, 4, 10)), (12, 110, Rows(3, 4, 10))]
    (around,) = loads(Memory.INP, 0, 0, [Extent(3, 10, 6, 1, 1), Extent(4, 1, 1, 2, 0)])
    assert around.padding == Padding(1, 1, 2, 0) and around.rows == Rows(3, 4, 10)
    assert [one.rows for one in stores(0, 0, [Extent(3, 10, 1)])] == [Rows(3, 1, 10)]
    with pytest.raises(ScheduleError, match="more than 15"):
        loads(Memory.INP, 0, 0, [Extent(4, 1, 1, 16, 0)])
