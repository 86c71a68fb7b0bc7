"""Requantises 32-bit sums to 8-bit numbers, by the rounding rule of integer networks.

    out = min(max(floor((sum * multiplier + half) / 2^shift) + zero_point, low), high)        half = 2^(shift - 1)

The product has 64 bits, and the division is an arithmetic shift, so halves are rounded up. TensorFlow Lite calls this single rounding. An operator has one
`shift`, and a `multiplier` of 31 bits for each of its channels. If the largest real factor is from 2^-12 to 1/2, the shift is 32: the result is then the upper
word of the product, and the largest multiplier is still at least 2^20. Otherwise the shift is chosen so that the largest multiplier fills 31 bits.

If factors are below 1/8, half and zero point are folded into the bias: `round((half + zero_point * 2^shift) / multiplier)` is added to the bias, and both
become 0. The result is then the upper word of a product, which takes one instruction. It differs from the result of the rule above only if the exact result
is within factor / 2 (at most 1/16 of a step) of being rounded the other way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ansor import te
from ansor.errors import ModelError
from ansor.te.expr import Expr

LEAST, MOST = -128, 127
HIGH_WORD = 32
FOLDS = 3
"""Half and zero point can be folded into the bias for factors below 2^-3."""
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rescale:
    """multipliers: int32 [channels], or [1] for all channels; shift: 1 to 62; the result is `zero_point` + the quotient, clamped to `low` and `high`.

    rounds: whether half and zero point are added here; otherwise the bias includes both, and `zero_point` is 0.
    """

    multipliers: NDArray[np.int32]
    shift: int
    zero_point: int
    low: int = LEAST
    high: int = MOST
    rounds: bool = True

    @property
    def half(self) -> int:
        """The number that is added to a product before the shift."""
        return 1 << (self.shift - 1) if self.rounds else 0

    def folded(self, bias: NDArray[np.int64], most: NDArray[np.int64]) -> tuple[Rescale, NDArray[np.int64]]:
        """The rescale with half and zero point folded into the bias [channels], and the new bias; both unchanged if that is too inaccurate, or sums might not
        fit into 32 bits.

        most: the greatest magnitude of the sums of each channel, without bias.
        """
        if self.shift != HIGH_WORD or not 0 < self.multipliers.min() <= self.multipliers.max() < 1 << (HIGH_WORD - FOLDS):
            return self, bias
        whole = np.rint((self.half + (self.zero_point << HIGH_WORD)) / self.multipliers.astype(np.float64)).astype(np.int64)
        if np.any(np.abs(bias + whole) + most >= 1 << 31):
            return self, bias
        return replace(self, rounds=False, zero_point=0), bias + whole

    def apply(self, sums: NDArray[np.int64]) -> NDArray[np.int8]:
        """Requantise sums [..., channels] of at most 32 bits."""
        rounded = (sums * self.multipliers.astype(np.int64) + self.half) >> self.shift
        found: NDArray[np.int8] = np.clip(rounded + self.zero_point, self.low, self.high).astype(np.int8)
        return found

    def declared(self, total: Expr, multiplier: Expr) -> Expr:
        """The same for int32 expressions; returns an int8 expression."""
        product = total.astype("int64") * multiplier.astype("int64")
        if self.shift == HIGH_WORD:  # half and zero point are added to the product as one number
            added = self.half + (self.zero_point << HIGH_WORD)
            return clamped(((product + te.const(added, "int64") if added else product) >> te.const(HIGH_WORD, "int64")).astype("int32"), self.low, self.high)
        wide = (product + te.const(self.half, "int64")) >> te.const(self.shift, "int64")
        dtype = "int32" if self.shift >= HIGH_WORD else "int64"  # sums and multipliers have 32 bits, so the upper word is enough
        return clamped(wide.astype(dtype) + te.const(self.zero_point, dtype), self.low, self.high)


def clamped(value: Expr, low: int, high: int) -> Expr:
    """Clamp an integer to `low` and `high`, as int8."""
    return te.min(te.max(value, te.const(low, value.dtype)), te.const(high, value.dtype)).astype("int8")


def rescale_of(factors: Doubles, zero_point: int, limits: tuple[int, int], what: str) -> Rescale:
    """The rescale by real factors, one for each channel. Raises ModelError for factors that do not fit into 31 bits."""
    largest = float(np.max(factors, initial=0.0))
    if not (np.all(np.isfinite(factors)) and np.all(factors >= 0) and 2.0**-31 <= largest < 2.0**29):
        raise ModelError(f"asked to rescale the sums of {what} by {largest:g}, which has to be a number from 2^-31 to 2^29; check the scales of its tensors")
    shift = HIGH_WORD if 2.0**-12 <= largest < 0.5 else 30 - math.frexp(largest)[1] + 1
    multipliers = np.minimum(np.rint(factors * 2.0**shift), 2.0**31 - 1)
    return Rescale(multipliers.astype(np.int32), shift, zero_point, *limits)
