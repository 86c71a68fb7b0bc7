"""Regions: what of a tensor is computed inside a loop, and where loops that do not divide are held."""

from __future__ import annotations

import numpy as np
import pytest

from ansor import te
from ansor.errors import ScheduleError
from ansor.ir.dag import Dag
from ansor.ir.linear import Var, of
from ansor.ir.printer import linear_text
from ansor.schedule.extents import loop_extents
from ansor.schedule.hull import hull, span_of
from ansor.schedule.regions import Frame, regions_of
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeAt, FollowSplit, Fuse, Reorder, Split, SplitOuter, Step
from ansor.te.tensor import Tensor


def neighbours(n: int = 18) -> list[Tensor]:
    x = te.placeholder((n,), name="x")
    p = te.compute((n,), lambda i: x[i] * 2.0, name="p")
    return [x, te.compute((n - 2,), lambda i: p[i] + p[i + 2], name="y")]


def frame(tensors: list[Tensor], stage: str, *steps: Step) -> Frame:
    return regions_of(Sketch(Dag(tensors)).then(*steps).state, {}).frames[stage]


def test_a_region_is_what_its_readers_read() -> None:
    found = frame(neighbours(), "p", Split("y", "i", (4,), 2), ComputeAt("p", "y", "i_0"))
    assert found.region.shape == (6,) and linear_text(found.region.base[0]) == "y_i_0 * 4" and [var.name for var in found.path] == ["y_i_0"]
    assert [linear_text(index) for index in found.region.stored((of(found.path[0]) * 4 + 5,))] == ["y_i_0 * 0 + 5"]


def test_a_region_is_no_larger_than_the_tensor() -> None:
    found = frame(neighbours(), "p", Split("y", "i", (16,), 2), ComputeAt("p", "y", "i_0"))
    assert found.region.shape == (18,)


def test_loops_that_do_not_divide_are_guarded() -> None:
    (guard,) = frame(neighbours(), "y", Split("y", "i", (5,), 2)).guards
    assert (linear_text(guard.value), guard.low, guard.high) == ("y_i_0 * 5 + y_i_1", None, 16)
    assert frame(neighbours(), "y", Split("y", "i", (4,), 2)).guards == ()


def test_what_nobody_reads_has_no_region() -> None:
    x = te.placeholder((4,), name="x")
    p = te.compute((4,), lambda i: x[i] * 2.0, name="p")
    y, z = (te.compute((4,), lambda i: p[i] + 1.0, name=name) for name in "yz")
    with pytest.raises(ScheduleError, match="it is read by y, z"):
        frame([x, y, z], "p", ComputeAt("p", "y", "i"))


def test_the_hull_of_reads_at_other_loops_is_the_whole_dimension() -> None:
    i, j = Var("i", 4), Var("j", 8)
    spans = [span_of(of(i) * 8 + of(j), {id(i)}), span_of(of(i) * 8 + of(j) + 2, {id(i)})]
    start, length = hull(spans, 64)
    assert (linear_text(start), length) == ("i * 8", 10)
    start, length = hull([*spans, span_of(of(j), {id(i)})], 64)
    assert (linear_text(start), length) == ("0", 64)


def test_extents_of_a_population_are_those_of_its_rows() -> None:
    steps: tuple[Step, ...] = (Split("y", "i", "cut", 3), Fuse("y", ("i_0", "i_1")))
    state = Sketch(Dag(neighbours())).then(*steps).state
    cuts = [(2, 4), (3, 5), (1, 16), (7, 7)]
    population = loop_extents(state["y"], {"i": 16}, {"cut": tuple(np.asarray(cuts).T)})
    for k, cut in enumerate(cuts):
        alone = loop_extents(state["y"], {"i": 16}, {"cut": cut})
        assert {loop: int(np.broadcast_to(value, 4)[k]) for loop, value in population.items()} == alone


def test_splits_from_outside_and_after_others() -> None:
    state = Sketch(Dag(neighbours())).then(SplitOuter("y", "i", (3,), 2), Reorder("y", ("i_1", "i_0"))).state
    assert loop_extents(state["y"], {"i": 16}, {}) == {"i": 16, "i_0": 3, "i_1": 6}
    follows = Sketch(Dag(neighbours())).then(FollowSplit("y", "i", (2, 2, 2), 3)).state
    assert loop_extents(follows["y"], {"i": 16}, {}) == {"i": 16, "i_0": 2, "i_1": 2, "i_2": 4}
