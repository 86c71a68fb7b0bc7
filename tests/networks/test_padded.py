"""To which lengths calls are padded, and how inputs are."""

from __future__ import annotations

from math import gcd

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ansor.networks.padded import length_for, lengths_to_try, lengths_up_to, others_of, padded_or_cut, shortest_for

pytestmark = pytest.mark.torch


@given(st.integers(2, 5000))
def test_lengths_rise_to_the_largest_with_little_padding(largest: int) -> None:
    lengths = lengths_up_to(largest)
    assert list(lengths) == sorted(set(lengths)) and lengths[-1] == largest
    assert all(one % 8 == 0 for one in lengths[:-1]) and len(lengths) <= 4 * largest.bit_length()
    assert all(2 * longer <= 3 * shorter and (shorter < 32 or 4 * longer <= 5 * shorter) for shorter, longer in zip(lengths, lengths[1:], strict=False))


@given(st.integers(1, 5000))
def test_a_call_is_padded_to_a_length_however_long_it_is(length: int) -> None:
    padded = length_for(length)
    assert padded in lengths_up_to(9999) and shortest_for(padded) <= length <= padded and length_for(shortest_for(padded)) == padded


def test_inputs_are_padded_with_their_last_element_or_cut() -> None:
    for array in (np.arange(6).reshape(2, 3), torch.arange(6).reshape(2, 3)):
        assert padded_or_cut(array, 1, 5).tolist() == [[0, 1, 2, 2, 2], [3, 4, 5, 5, 5]]
        assert padded_or_cut(array, 0, 3).tolist() == [[0, 1, 2], [3, 4, 5], [3, 4, 5]]
        assert padded_or_cut(array, 1, 2).tolist() == [[0, 1], [3, 4]] and padded_or_cut(array, 0, 2).tolist() == array.tolist()


@given(st.integers(2, 3000), st.data())
def test_lengths_to_compare_are_shorter_ones_that_calls_have(length: int, data: st.DataObject) -> None:
    shortest = data.draw(st.integers(1, length - 1))
    assert all(min(shortest, 2) <= one < length or length == 2 for one in others_of(length, shortest))
    first, second = lengths_to_try(length, shortest)
    assert first == shortest <= second < length and (second == shortest or gcd(second, length) == 1)
