import numpy as np
import pytest

from ansor.cost_model.metrics import pairwise_accuracy, peak, rank_correlation, rmse

LABELS = np.array([0.2, 1.0, 0.5, 0.0])


def test_perfect_scores() -> None:
    assert rmse(LABELS, LABELS) == 0
    assert pairwise_accuracy(LABELS, LABELS) == 1
    assert peak(LABELS, LABELS, 1) == peak(LABELS, LABELS, 5) == 1


def test_reversed_scores() -> None:
    assert pairwise_accuracy(LABELS, -LABELS) == 0
    assert peak(LABELS, -LABELS, 1) == 0
    assert peak(LABELS, -LABELS, 4) == pytest.approx((0 + 0.2 + 0.5 + 1.0) / 4)


def test_rmse_is_the_root_of_the_mean_square() -> None:
    assert rmse(np.array([0.0, 0.0]), np.array([3.0, 4.0])) == pytest.approx(np.sqrt(12.5))


def test_a_label_best_below_one_is_normalised() -> None:
    assert peak(LABELS / 2, LABELS, 1) == 1


def test_edges_are_finite() -> None:
    nothing = np.zeros(0)
    assert (rmse(nothing, nothing), pairwise_accuracy(nothing, nothing), peak(nothing, nothing, 3)) == (0, 0.5, 1)
    assert peak(np.zeros(3), np.ones(3), 2) == 1
    assert peak(LABELS, LABELS, 99) == 1


def test_rank_correlation_sees_only_the_order() -> None:
    assert rank_correlation(LABELS, np.exp(LABELS)) == pytest.approx(1)
    assert rank_correlation(LABELS, -LABELS) == pytest.approx(-1)
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])) == pytest.approx(0.5)
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 2.0])) == pytest.approx(np.sqrt(3) / 2), "equal scores share their rank"
    assert rank_correlation(LABELS, np.ones(4)) == rank_correlation(LABELS[:1], LABELS[:1]) == 0
