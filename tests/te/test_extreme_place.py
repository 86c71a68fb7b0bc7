"""The place of an extreme, against NumPy, for all that reads it."""

from __future__ import annotations

import numpy as np
import pytest

from ansor import te
from ansor.ir.evaluate import evaluate
from ansor.te.extreme_place import flat_place, place_of_extreme


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("last", [False, True])
def test_first_and_last_of_several(dtype: str, last: bool) -> None:
    values = np.array([[1, 3, 3], [3, 0, 2], [2, 2, 2]]).astype(dtype)
    counts = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 0]], np.int32)
    x, w, r = te.placeholder((3, 3), dtype, name="x"), te.placeholder((3, 3), "int32", name="w"), te.reduce_axis(3, name="r")
    best = te.compute((3,), lambda i: te.max(x[i, r], axis=r), name="best")
    reduced = te.max if last else te.min
    nowhere = -1 if last else 3
    place = te.compute((3,), lambda i: reduced(place_of_extreme(x[i, r], best[i], [(r, 3)], nowhere, w[i, r] > 0), axis=r), name="place")
    (found,) = evaluate([place], {"x": values, "w": counts})
    assert found.tolist() == [1, 0, nowhere]


def test_a_nan_is_the_extreme() -> None:
    x, r = te.placeholder((4,), name="x"), te.reduce_axis(4, name="r")
    best = te.compute((), lambda: te.max(x[r], axis=r), name="best")
    place = te.compute((), lambda: te.min(place_of_extreme(x[r], best[()], [(r, 4)], 4), axis=r), name="place")
    (found,) = evaluate([place], {"x": np.array([1, 5, np.nan, np.nan], np.float32)})
    assert found == 2


def test_places_count_in_memory_order() -> None:
    i, j = te.placeholder((1,), "int32", name="i"), te.placeholder((1,), "int32", name="j")
    place = te.compute((1,), lambda k: flat_place([(i[k], 3), (j[k], 5)]), name="place")
    (found,) = evaluate([place], {"i": np.array([2], np.int32), "j": np.array([4], np.int32)})
    assert found.tolist() == [14]
