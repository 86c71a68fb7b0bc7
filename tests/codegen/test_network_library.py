"""Networks in C against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.codegen import network_library
from ansor.codegen.network_library import ROWS, Floats, Layers, Scaling, distinct, outputs_of
from ansor.errors import ToolchainError

pytestmark = pytest.mark.compiler


def layers(inputs: int = 7, units: int = 24, count: int = 2) -> Layers:
    rng = np.random.default_rng(inputs)

    def draw(*shape: int) -> Floats:
        return rng.standard_normal(shape).astype(np.float32)

    weights = draw(count, units, units) / np.float32(units**0.5)
    scale = np.abs(draw(inputs))
    scale[2] = 0  # a feature that never varied
    return Layers(Scaling(draw(inputs), scale), draw(inputs, units), draw(units), weights, draw(count, units), draw(units), 0.5, 2.0)


def rows(count: int, inputs: int = 7) -> Floats:
    return (3 * np.random.default_rng(count).standard_normal((count, inputs))).astype(np.float32)


@pytest.mark.parametrize("count", [0, 1, ROWS - 1, ROWS, 3 * ROWS + 5])
@pytest.mark.parametrize("further", [0, 1, 2, 3])
def test_c_and_numpy_agree(count: int, further: int, monkeypatch: pytest.MonkeyPatch) -> None:
    net = layers(count=further)
    found = outputs_of(net)(rows(count))
    monkeypatch.setattr(network_library, "_library", lambda: None)
    expected = outputs_of(net)(rows(count))
    assert found.shape == expected.shape == (count,) and found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


def test_a_row_gives_the_same_bits_whatever_stands_beside_it() -> None:
    run, given = outputs_of(layers()), rows(2 * ROWS + 3)
    together = run(given)
    assert [run(given[k : k + 1])[0] for k in range(len(given))] == together.tolist()
    np.testing.assert_array_equal(run(given[::2]), together[::2])


@pytest.mark.parametrize("units", [24, 10])
def test_the_parts_of_an_output_add_up_to_it(units: int) -> None:
    run, given = outputs_of(layers(units=units)), rows(ROWS + 3)
    outputs, parts = run.in_parts(given)
    np.testing.assert_array_equal(outputs, run(given))
    assert parts.shape == (len(given), units)
    np.testing.assert_allclose(parts.sum(axis=1) + 0.5, outputs, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(run.in_parts(given[3:5])[1], parts[3:5])


def test_features_that_are_far_off_are_held() -> None:
    run, given = outputs_of(layers()), rows(4)
    far = np.where(given > 0, np.float32(1e30), np.float32(-1e30))
    np.testing.assert_array_equal(run(far), run((far / 1e10).astype(np.float32)))


@pytest.mark.parametrize("inputs", [1, 7, 8, 19])
def test_rows_that_are_equal_bit_by_bit_are_found(inputs: int) -> None:
    few = rows(9, inputs)
    few[1], few[2] = 0.0, -0.0
    places = np.random.default_rng(0).integers(0, len(few), 200)
    kept, found = distinct(few[places])
    assert [row.tobytes() for row in kept] == list(dict.fromkeys(row.tobytes() for row in few[places]))
    assert kept[found].tobytes() == few[places].tobytes()


def test_rows_that_all_differ_are_kept_as_they_are() -> None:
    given = rows(ROWS + 3)
    kept, places = distinct(given)
    assert kept is given and places.tolist() == list(range(len(given)))
    assert [len(one) for one in distinct(rows(0))] == [0, 0]


def test_without_a_compiler_all_rows_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_library, "_library", lambda: None)
    kept, places = distinct(np.zeros((3, 7), np.float32))
    assert kept.shape == (3, 7) and places.tolist() == [0, 1, 2]


def test_units_that_c_does_not_take_are_left_to_numpy() -> None:
    net = layers(units=10)
    assert np.isfinite(outputs_of(net)(rows(5))).all()


def test_rows_of_another_width_are_refused() -> None:
    for units in (24, 10):
        with pytest.raises(ValueError, match=r"rows of shape \(5, 6\); it needs 7 features"):
            outputs_of(layers(units=units))(rows(5, 6))


def test_without_a_compiler_a_warning_says_who_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise ToolchainError("there is none")

    monkeypatch.setattr(network_library, "find_compiler", none)
    network_library._library.cache_clear()
    try:
        with pytest.warns(RuntimeWarning, match="evaluated by NumPy.*there is none"):
            assert len(outputs_of(layers())(rows(3))) == 3
    finally:
        network_library._library.cache_clear()
