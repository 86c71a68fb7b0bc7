"""Rescaling in 32 bits against the rule of integer networks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ansor.integer.rescale import Rescale, rescale_of
from ansor.offload.alu_rescale import AluRescale, alu_rescale

CHANNELS = 7


def sums_of(most: np.ndarray, seed: int) -> np.ndarray:
    """Both ends, what is around 0, and more, for each channel."""
    generator = np.random.default_rng(seed)
    drawn = generator.integers(-most, most + 1, (400, len(most)))
    return np.concatenate([np.stack([-most, most, 0 * most]), drawn, drawn >> 6, drawn >> 12])


def edges_of(rescale: Rescale, bias: np.ndarray, most: np.ndarray) -> np.ndarray:
    """What is around each sum from which on the result is another."""
    found, factors = [], np.maximum(np.broadcast_to(rescale.multipliers, most.shape), 1).tolist()
    for result in range(rescale.low, rescale.high + 1):
        ends = [((result - rescale.zero_point) * 2**rescale.shift - rescale.half) / factor for factor in factors]
        first = np.clip(np.ceil(np.array(ends)) - bias, -most, most).astype(np.int64)
        found += [np.clip(first + more, -most, most) for more in (-1, 0, 1)]
    return np.array(found)


def check(rescale: Rescale, bias: np.ndarray, most: np.ndarray, found: AluRescale) -> None:
    sums = np.concatenate([sums_of(most, 3), edges_of(rescale, bias, most)])
    np.testing.assert_array_equal(found.apply(sums.astype(np.int32)), rescale.apply(sums + bias))


@given(st.lists(st.integers(-3, 0), min_size=CHANNELS, max_size=CHANNELS), st.integers(-12, -2), st.integers(-128, 127), st.integers(10, 26), st.booleans())
def test_powers_of_two_are_exact(powers: list[int], power: int, zero_point: int, bits: int, folds: bool) -> None:
    rescale = rescale_of(2.0 ** (power + np.array(powers)), zero_point, (-100, 127), "a test")
    most = np.full(CHANNELS, 1 << bits, np.int64)
    bias = np.random.default_rng(bits).integers(-(1 << 15), 1 << 15, CHANNELS)
    if folds:
        rescale, bias = rescale.folded(bias, most)
    found = alu_rescale(rescale, bias.astype(np.int32), most)
    assert isinstance(found, AluRescale)
    assert found.part.added is None and found.low_part is None and (found.part.multipliers is not None) == (len(set(powers)) > 1)
    check(rescale, bias, most, found)


@given(st.integers(0, 2000), st.floats(-8, 2), st.sampled_from([0, -3, -128]), st.integers(10, 27), st.booleans())
def test_any_scales_are_exact(seed: int, power: float, zero_point: int, bits: int, folds: bool) -> None:
    """Factors from 2^-12 on, those of a layer's channels as far apart as those of trained layers."""
    generator = np.random.default_rng(seed)
    rescale = rescale_of(2.0 ** (power - generator.uniform(0, 4, CHANNELS)), zero_point, (-128, 127), "a test")
    bias, most = generator.integers(-3000, 3000, CHANNELS), np.full(CHANNELS, 1 << bits, np.int64)
    if folds:
        rescale, bias = rescale.folded(bias, most)
    found = alu_rescale(rescale, bias, most)
    assert isinstance(found, AluRescale), found
    check(rescale, bias, most, found)


@given(st.integers(0, 2000), st.integers(2, 20), st.integers(1, 62))
def test_others_are_exact_or_refused(seed: int, bits: int, shift: int) -> None:
    generator = np.random.default_rng(seed)
    rescale = Rescale(generator.integers(0, 1 << generator.integers(1, 31), CHANNELS).astype(np.int32), shift, int(generator.integers(-128, 128)))
    bias, most = generator.integers(-1000, 1000, CHANNELS).astype(np.int32), np.full(CHANNELS, 1 << bits, np.int64)
    found = alu_rescale(rescale, bias, most)
    if isinstance(found, str):
        assert found.startswith("its sums have ") and shift > 32
    else:
        check(rescale, bias, most, found)


def test_what_needs_more_is_said() -> None:
    rescale = rescale_of(np.array([2.0**-20 * 1.23]), 0, (-128, 127), "a test")
    found = alu_rescale(rescale, np.zeros(1, np.int32), np.array([1 << 30]))
    assert found == "its sums have 56 bits when they are rescaled, too many for two 32-bit products: quantise with scales that are powers of two"
    assert alu_rescale(rescale, np.ones(1, np.int32), np.array([1 << 31])) == "its sums have up to 33 bits with their bias, but a core has 32"
