"""Distances in C against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.codegen import distance_library
from ansor.codegen.distance_library import LANES, Points, distances_from
from ansor.errors import ToolchainError

pytestmark = pytest.mark.compiler


def points(count: int, width: int = 9) -> Points:
    return np.random.default_rng(count).standard_normal((count, width)).astype(np.float32)


@pytest.mark.parametrize("count", [0, 1, LANES - 1, LANES, 2 * LANES + 3])
@pytest.mark.parametrize("others", [0, 1, 4, 7])
def test_c_and_numpy_agree(count: int, others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = distances_from(points(count))(points(others))
    monkeypatch.setattr(distance_library, "_library", lambda: None)
    expected = distances_from(points(count))(points(others))
    assert found.shape == expected.shape == (others, count)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_point_is_as_far_from_others_whatever_stands_beside_it() -> None:
    given = points(LANES + 5)
    together = distances_from(given)(given)
    assert (np.diag(together) == 0).all() and (together == together.T).all()
    for k in range(len(given)):
        np.testing.assert_array_equal(distances_from(given[k : k + 1])(given)[:, 0], together[:, k])
        np.testing.assert_array_equal(distances_from(given)(given[k : k + 1])[0], together[k])


@pytest.mark.parametrize("compiled", [True, False])
def test_points_of_other_dimensions_are_refused(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiled:
        monkeypatch.setattr(distance_library, "_library", lambda: None)
    with pytest.raises(ValueError, match=r"points of shape \(2, 5\) from points of 9 dimensions"):
        distances_from(points(3))(points(2, 5))


def test_without_a_compiler_a_warning_says_who_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise ToolchainError("there is none")

    monkeypatch.setattr(distance_library, "find_compiler", none)
    distance_library._library.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="computed by NumPy.*there is none"):
            assert distances_from(points(3))(points(2)).shape == (2, 3)
    finally:
        distance_library._library.cache_clear()
