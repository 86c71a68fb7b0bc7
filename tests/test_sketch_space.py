"""A sketch as the search sees it: remembering what `legal` lowered changes no feature."""

import numpy as np
import pytest

from ansor.schedule.sketch import Rows, Sketch
from ansor.search.sampling import SampledSpace
from ansor.sketch_space import SketchSpace
from ansor.task import SearchTask
from ansor.te import workloads
from ansor.te.tensor import Tensor

TARGET = "cpu -mcpu=znver3 -threads=1"


def drawn(space: SketchSpace, count: int = 60) -> Rows:
    return SampledSpace(space).draw(count, np.random.default_rng(0))


@pytest.mark.parametrize("tensors", [workloads.matmul(64, 64, 64), workloads.softmax_nm(8, 32)])
def test_features_are_the_same_after_legal_whichever_rows_are_asked_for(tensors: list[Tensor]) -> None:
    task = SearchTask(tensors=tensors, target=TARGET)
    for space in task.spaces[:6]:
        rows = drawn(space)
        legal = space.legal(rows)
        asked = [rows, rows[legal], rows[::-1], rows[:5], np.concatenate([rows[:50], drawn(space, 61)[60:]])]
        for some in asked:
            space.legal(rows)
            after = space.features(some)
            alone = SketchSpace(space.sketch, space.target).features(some)
            np.testing.assert_array_equal(after.rows, alone.rows)
            np.testing.assert_array_equal(after.prior_logs(), alone.prior_logs())
            np.testing.assert_array_equal(after.segment, alone.segment)
            assert after.count == len(some)


def test_rows_changed_after_legal_are_lowered_anew() -> None:
    task = SearchTask(tensors=workloads.matmul(64, 64, 64), target=TARGET)
    space = task.spaces[0]
    rows = drawn(space)
    space.legal(rows)
    rows[:] = rows[0]
    np.testing.assert_array_equal(space.features(rows).rows, SketchSpace(space.sketch, space.target).features(rows).rows)


def test_a_space_without_choices() -> None:
    task = SearchTask(tensors=workloads.matmul(4, 4, 4), target=TARGET)
    space = SketchSpace(Sketch(task.dag), task.target)
    rows = np.zeros((1, 0), np.int64)
    assert space.legal(rows).tolist() == [True]
    assert space.features(rows).count == 1
