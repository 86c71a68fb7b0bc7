import json

import numpy as np
import pytest

from ansor.cost_model.kriging import NOISE, RANGE, Kriging, Points, fit_kriging, kriging_from_document


def points(count: int, seed: int = 0, width: int = 3) -> Points:
    return np.random.default_rng(seed).uniform(-1, 1, (count, width)).astype(np.float32)


def test_one_error_fades_with_distance() -> None:
    where = np.zeros((1, 2), np.float32)
    carried = fit_kriging(where, np.array([1.0]), np.array([1.0]))
    found = carried(np.array([[0, 0], [RANGE, 0], [0, 100 * RANGE]], np.float32))
    np.testing.assert_allclose(found, [1 / (1 + NOISE), np.exp(-1) / (1 + NOISE), 0], atol=1e-6)


def test_an_error_that_weighs_little_is_taken_for_noise() -> None:
    where = points(1)
    known = [fit_kriging(where, np.array([1.0]), np.array([weight]))(where)[0] for weight in (0.1, 1.0, 10.0)]
    assert known[0] < known[1] < known[2] < 1


def test_a_rough_function_is_learned_from_examples() -> None:
    def errors(of: Points) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.abs(of[:, 0]).astype(np.float64) - 0.3 * of[:, 1]

    known, unseen = 0.2 * points(400), 0.2 * points(50, seed=1)
    carried = fit_kriging(known, errors(known), np.ones(400))
    assert np.sqrt(np.mean((carried(unseen) - errors(unseen)) ** 2)) < 0.3 * np.std(errors(unseen))


def test_no_program_and_the_same_program_twice() -> None:
    twice = np.repeat(points(1), 2, axis=0)
    assert fit_kriging(twice, np.array([0.5, 0.7]), np.ones(2))(twice)[0] == pytest.approx(0.6 / (1 + NOISE / 2))
    assert fit_kriging(points(0), np.zeros(0), np.zeros(0))(points(4)).tolist() == [0.0] * 4


def test_a_coefficient_for_each_point() -> None:
    with pytest.raises(ValueError, match="a coefficient for each point"):
        Kriging(points(3), np.zeros(2))


def test_written_down_and_read_again() -> None:
    carried = fit_kriging(points(20), np.linspace(-1, 1, 20), np.ones(20))
    again = kriging_from_document(json.loads(json.dumps(carried.document())))
    np.testing.assert_array_equal(again(points(30, 1)), carried(points(30, 1)))
