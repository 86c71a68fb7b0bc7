from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.errors import ModelError
from ansor.integer.rescale import rescale_of

factors = st.lists(st.floats(2.0**-30, 2.0**20), min_size=1, max_size=4)
sums = st.integers(-(2**31), 2**31 - 1)


@given(factors, sums, st.integers(-128, 127))
def test_the_formula_in_exact_integers(values: list[float], total: int, zero: int) -> None:
    rescale = rescale_of(np.array(values), zero, (-128, 127), "y")
    assert 1 <= rescale.shift <= 62
    found = rescale.apply(np.full(len(values), total, np.int64))
    for one, multiplier in zip(found.tolist(), rescale.multipliers.tolist(), strict=True):
        assert one == max(-128, min(127, (total * multiplier + 2 ** (rescale.shift - 1)) // 2**rescale.shift + zero))


@given(st.floats(2.0**-24, 2.0**10), st.floats(-140, 140))
def test_it_is_the_real_product_rounded(factor: float, wanted: float) -> None:
    total = max(-(2**31), min(2**31 - 1, round(wanted / factor)))
    rescale = rescale_of(np.array([factor]), 0, (-128, 127), "y")
    (found,) = rescale.apply(np.array([total])).tolist()
    assert abs(found - max(-128, min(127, total * factor))) <= 0.5 + 1e-3


@pytest.mark.parametrize(("factor", "shift"), [(0.49, 32), (2.0**-12, 32), (0.5, 31), (0.9, 31), (2.0, 29), (2.0**-13, 43)])
def test_the_upper_word_is_the_result_where_that_is_precise(factor: float, shift: int) -> None:
    rescale = rescale_of(np.array([factor, factor / 3]), 0, (-128, 127), "y")
    assert rescale.shift == shift and int(rescale.multipliers[0]) == round(factor * 2**shift)


def test_halves_are_rounded_up() -> None:
    rescale = rescale_of(np.array([0.25]), 0, (-128, 127), "y")
    assert rescale.apply(np.array([2, -2, 6, -6, 1, -1]).reshape(-1, 1)).reshape(-1).tolist() == [1, 0, 2, -1, 0, 0]


@pytest.mark.parametrize("factor", [math.inf, math.nan, -0.1, 0.0, 2.0**30])
def test_factors_that_no_number_holds_are_refused(factor: float) -> None:
    with pytest.raises(ModelError, match="rescale the sums of conv by"):
        rescale_of(np.array([factor]), 0, (-128, 127), "conv")


@given(st.lists(st.floats(2.0**-11, 0.124), min_size=1, max_size=3), st.integers(-128, 127), st.floats(-300, 300))
def test_a_half_and_a_zero_point_in_the_bias(values: list[float], zero: int, wanted: float) -> None:
    rescale = rescale_of(np.array(values), zero, (-128, 127), "y")
    folded, bias = rescale.folded(np.full(len(values), 7, np.int64), np.full(len(values), 1 << 20))
    assert folded.half == folded.zero_point == 0 and folded.shift == 32
    totals = np.array([round(wanted / one) for one in values], np.int64)
    found, exact = folded.apply(totals - 7 + bias), totals * np.array(values) + zero
    assert np.all(np.abs(found - np.clip(exact, -128, 127)) <= 0.5 + 1 / 16 + 1e-3)


@pytest.mark.parametrize(("factor", "most"), [(0.2, 0), (0.01, 2**31 - 100), (2.0**-14, 0)])
def test_a_half_stays_where_the_bias_cannot_hold_it(factor: float, most: int) -> None:
    rescale = rescale_of(np.array([factor]), 3, (-128, 127), "y")
    folded, bias = rescale.folded(np.array([5]), np.array([most]))
    assert folded is rescale and bias.tolist() == [5]
