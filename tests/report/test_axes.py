"""Axes: positions and tick marks."""

from __future__ import annotations

import pytest

from ansor.report.axes import MARKS, Axis, cost_axis


def test_positions_are_linear_or_logarithmic() -> None:
    assert [Axis(0, 10, 0, 100).place(value) for value in (0, 5, 10, 20)] == [0, 50, 100, 100]
    assert [Axis(1, 100, 200, 0, True).place(value) for value in (1, 10, 100, 0.1)] == [200, 100, 0, 200]


@pytest.mark.parametrize("low,high", [(1e-6, 1e-6), (1e-6, 1.01e-6), (3e-6, 9e-6), (1e-9, 1.0), (1, 7.9), (5e8, 4.1e9), (2.0, 1e18)])
def test_every_range_has_a_few_marks_within_it(low: float, high: float) -> None:
    axis = cost_axis(low, high, 100, 0)
    assert axis.low < low <= high < axis.high
    assert 1 <= len(axis.marks) <= MARKS + 1 and all(axis.low * (1 - 1e-9) <= mark <= axis.high * (1 + 1e-9) for mark in axis.marks)
    assert len({axis.place(mark) for mark in axis.marks}) == len(axis.marks)


def test_marks_are_round() -> None:
    assert Axis(0, 24, 0, 1).marks == (0, 5, 10, 15, 20)
    assert Axis(0.9, 110, 0, 1, True).marks == pytest.approx((1, 3, 10, 30, 100))
