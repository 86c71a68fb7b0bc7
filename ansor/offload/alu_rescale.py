"""Rescales on a 32-bit ALU that adds, multiplies and shifts. The results are exactly those of `integer.rescale`; if that is not possible, it says why.

    x   = sum + bias
    out = min(max(((x * m + h) >> shift) + zero_point, low), high)

The power of two that all multipliers and the shift have in common is divided out. This holds for every h:

    floor((x * m * 2^k + h) / 2^(k + n)) = floor((x * m + floor(h / 2^k)) / 2^n)

Scales that are powers of two leave multipliers of 1, or of a few bits, and h is folded into the bias. Others take two more steps if products would not fit:

    x is first clamped to a range of about 2^8 / factor; all results below it are `low`, and all above it are `high`
    floor((x * (a * 2^t + b) + h) / 2^(t + n)) = floor((x * a + floor((x * b + h mod 2^t) / 2^t) + floor(h / 2^t)) / 2^n)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.integer.rescale import Rescale

LIMIT = 1 << 31
LARGEST_SPLIT = 15
"""The most bits of the low part of a multiplier, so that what is added to its products fits into an immediate."""

Numbers = NDArray[np.int64]
Constants = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Part:
    """(x * multipliers + added) >> shift. multipliers: int32 [channels], None if all are 1; added: int32 [channels], None if all are 0."""

    multipliers: Constants | None
    added: Constants | None
    shift: int


@dataclass(frozen=True, eq=False)
class AluRescale:
    """bias: int32 [channels]; limits: the range to which sums are clamped, [channels] each; low_part: the part for the low bits of multipliers, whose result is
    added to the products of `part`."""

    bias: Constants
    part: Part
    zero_point: int
    low: int
    high: int
    limits: tuple[Constants, Constants] | None = None
    low_part: Part | None = None

    def apply(self, sums: Constants) -> NDArray[np.int8]:
        """The ALU's results for sums [..., channels], without the bias; wraps around at 32 bits as the ALU does."""
        held = sums.astype(np.int32) + self.bias
        held = held if self.limits is None else np.maximum(np.minimum(held, self.limits[1]), self.limits[0])
        found = held if self.part.multipliers is None else held * self.part.multipliers
        if self.low_part is not None:
            assert self.low_part.multipliers is not None
            found = found + (held * self.low_part.multipliers + (0 if self.low_part.added is None else self.low_part.added) >> self.low_part.shift)
        found = (found if self.part.added is None else found + self.part.added) >> self.part.shift
        result: NDArray[np.int8] = np.clip(found + self.zero_point, self.low, self.high).astype(np.int8)
        return result


@dataclass(frozen=True, eq=False)
class _RescaledSum:
    """The computation (x * factors + half) >> shift on sums x, bias included, of magnitude up to `reach`."""

    rescale: Rescale
    bias: Numbers
    reach: Numbers
    factors: Numbers
    half: int
    shift: int

    def made(self, part: Part, limits: tuple[Numbers, Numbers] | None = None, low_part: Part | None = None) -> AluRescale:
        ends = None if limits is None else (limits[0].astype(np.int32), limits[1].astype(np.int32))
        return AluRescale(self.bias.astype(np.int32), part, self.rescale.zero_point, self.rescale.low, self.rescale.high, ends, low_part)

    def whole(self, reach: Numbers) -> Part | None:
        """The computation with one product; None if that does not fit."""
        if self.shift > 31 or np.any(reach * self.factors + self.half >= LIMIT) or self.factors.max() >= LIMIT:
            return None
        return _part(self.factors, self.half, self.shift)

    def split(self, reach: Numbers) -> tuple[Part, Part] | None:
        """The computation with two products, of the high bits of the factors and of the low ones; None if that does not fit."""
        for bits in range(max(1, self.shift - 31), min(LARGEST_SPLIT, self.shift) + 1):
            high, low = self.factors >> bits, self.factors & (1 << bits) - 1
            first, second = self.half >> bits, self.half & (1 << bits) - 1
            products = reach * low + second
            if np.all(products < LIMIT) and np.all(reach * high + (products >> bits) + 1 + first < LIMIT):
                return _part(high, first, self.shift - bits), _part(low, second, bits, plain=False)
        return None

    def limits(self) -> tuple[Numbers, Numbers]:
        """For each channel the greatest sum whose result is `low`, and the least whose result is `high`; the ends of the reach if it has no such sum."""
        low, high = self.rescale.low - self.rescale.zero_point, self.rescale.high - self.rescale.zero_point
        ends = []
        for factor, most in zip(self.factors.tolist(), self.reach.tolist(), strict=True):
            least = -(-(((low + 1) << self.shift) - self.half) // factor) - 1 if factor else -most
            greatest = -(-((high << self.shift) - self.half) // factor) if factor else most
            ends.append((max(-most, min(least, most)), max(-most, min(greatest, most))))
        found = np.array(ends, np.int64)
        return found[:, 0], found[:, 1]


def alu_rescale(rescale: Rescale, bias: NDArray[np.signedinteger], most: Numbers) -> AluRescale | str:
    """The same rescale on the ALU, or why it is not possible. bias: [channels]; most: the greatest magnitude of each channel's sums without the bias."""
    asked = _asked(rescale, bias.astype(np.int64), most)
    if np.any(asked.reach >= LIMIT):
        return f"its sums have up to {int(asked.reach.max()).bit_length() + 1} bits with their bias, but a core has 32"
    if (part := asked.whole(asked.reach)) is not None:
        return asked.made(part)
    limits = asked.limits()
    reach = np.maximum(np.abs(limits[0]), np.abs(limits[1]))
    if (part := asked.whole(reach)) is not None:
        return asked.made(part, limits)
    parts = asked.split(reach)
    if parts is None:
        bits = int(np.ceil(np.log2(float(np.max(reach * asked.factors.astype(np.float64))) + 1))) + 1
        return f"its sums have {bits} bits when they are rescaled, too many for two 32-bit products: quantise with scales that are powers of two"
    return asked.made(parts[0], limits if np.any(reach < asked.reach) else None, parts[1])


def _asked(rescale: Rescale, bias: Numbers, most: Numbers) -> _RescaledSum:
    """The computation with common powers of two divided out, and with half folded into the bias if all factors divide it."""
    factors = np.broadcast_to(rescale.multipliers, bias.shape).astype(np.int64)
    together = int(np.bitwise_or.reduce(factors))
    out = min((together & -together).bit_length() - 1 if together else 0, rescale.shift)
    factors, half = factors >> out, rescale.half >> out
    if factors.min() > 0 and np.all(half % factors == 0) and np.all(most + np.abs(bias + half // factors) < LIMIT):
        bias, half = bias + half // factors, 0
    return _RescaledSum(rescale, bias, most + np.abs(bias), factors, half, rescale.shift - out)


def _part(factors: Numbers, half: int, shift: int, *, plain: bool = True) -> Part:
    """A part with the same half for all channels. plain: whether multipliers of 1 may be left out."""
    added = np.full(factors.shape, half, np.int32) if half else None
    return Part(None if plain and np.all(factors == 1) else factors.astype(np.int32), added, shift)
