"""Conversion between indices and digits."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.errors import ConfigError
from ansor.templates.mixed_radix import knob2point, point2knob

sizes = st.lists(st.integers(1, 1000), max_size=20)


def test_the_first_digit_is_the_fastest() -> None:
    assert point2knob(193, [2, 7, 9, 2]) == [1, 5, 4, 1]
    assert [point2knob(point, [2, 3]) for point in range(6)] == [[0, 0], [1, 0], [0, 1], [1, 1], [0, 2], [1, 2]]


@given(sizes, st.data())
def test_conversions_are_inverse(dims: list[int], data: st.DataObject) -> None:
    point = data.draw(st.integers(0, prod(dims) - 1))
    knob = point2knob(point, dims)
    assert len(knob) == len(dims) and all(0 <= digit < size for digit, size in zip(knob, dims, strict=True))
    assert knob2point(knob, dims) == point


@pytest.mark.parametrize("point", [-1, 252])
def test_a_point_outside_is_an_index_error(point: int) -> None:
    with pytest.raises(IndexError, match=f"asked for point {point} of a space of 252; points run from 0 to 251"):
        point2knob(point, [2, 7, 9, 2])


@pytest.mark.parametrize("knob", [[0], [0, 7], [-1, 0], [0, 0, 0]])
def test_digits_must_fit(knob: list[int]) -> None:
    with pytest.raises(ConfigError, match="one digit per size"):
        knob2point(knob, [2, 7])
