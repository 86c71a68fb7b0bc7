"""How 32-bit sums become 8-bit numbers again: the one rounding rule of integer networks.

    out = min(max(floor((sum * multiplier + half) / 2^shift) + zero_point, low), high)        half = 2^(shift - 1)

The product has 64 bits, and the division is a shift that keeps the sign: halves are rounded up. This is what TensorFlow Lite calls single rounding. There is
one `shift` for an operator and a `multiplier` of 31 bits for each of its channels. The shift is 32, so that the upper word of the product is the result,
wherever the largest multiplier then has 20 bits or more (real factors from 2^-12 to 1/2); otherwise it is what makes the largest multiplier fill 31 bits.

If factors are below 1/8, half and zero point go into the bias: `round((half + zero_point * 2^shift) / multiplier)` is added to it, and both are 0. The upper
word of a product, which is one instruction, is then the result. It differs from that of the rule above only if the exact result is within factor / 2, at most
1/16 of a step, of being rounded the other way.
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
"""Factors below 2^-3 have their half in the bias."""
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rescale:
    """multipliers: int32 [channels], or [1] for all channels; shift: 1 to 62; the result is `zero_point` + the quotient, from `low` to `high`.

    rounds: whether half and zero point are added here; otherwise the bias contains both, and `zero_point` is 0.
    """

    multipliers: NDArray[np.int32]
    shift: int
    zero_point: int
    low: int = LEAST
    high: int = MOST
    rounds: bool = True

    @property
    def half(self) -> int:
        """What is added to a product."""
        return 1 << (self.shift - 1) if self.rounds else 0

    def folded(self, bias: NDArray[np.int64], most: NDArray[np.int64]) -> tuple[Rescale, NDArray[np.int64]]:
        """The same with half and zero point in the bias [channels], and that bias, if this is accurate enough and sums stay within 32 bits.

        most: the greatest magnitude of the sums of each channel without bias.
        """
        if self.shift != HIGH_WORD or not 0 < self.multipliers.min() <= self.multipliers.max() < 1 << (HIGH_WORD - FOLDS):
            return self, bias
        whole = np.rint((self.half + (self.zero_point << HIGH_WORD)) / self.multipliers.astype(np.float64)).astype(np.int64)
        if np.any(np.abs(bias + whole) + most >= 1 << 31):
            return self, bias
        return replace(self, rounds=False, zero_point=0), bias + whole

    def apply(self, sums: NDArray[np.int64]) -> NDArray[np.int8]:
        """Sums [..., channels] of at most 32 bits as 8-bit numbers."""
        rounded = (sums * self.multipliers.astype(np.int64) + self.half) >> self.shift
        found: NDArray[np.int8] = np.clip(rounded + self.zero_point, self.low, self.high).astype(np.int8)
        return found

    def declared(self, total: Expr, multiplier: Expr) -> Expr:
        """The same for expressions of dtype int32; an expression of dtype int8."""
        product = total.astype("int64") * multiplier.astype("int64")
        if self.shift == HIGH_WORD:  # half and zero point are one number, which processors add to the product
            added = self.half + (self.zero_point << HIGH_WORD)
            return clamped(((product + te.const(added, "int64") if added else product) >> te.const(HIGH_WORD, "int64")).astype("int32"), self.low, self.high)
        wide = (product + te.const(self.half, "int64")) >> te.const(self.shift, "int64")
        dtype = "int32" if self.shift >= HIGH_WORD else "int64"  # sums and multipliers have 32 bits, so the upper word is enough
        return clamped(wide.astype(dtype) + te.const(self.zero_point, dtype), self.low, self.high)


def clamped(value: Expr, low: int, high: int) -> Expr:
    """An integer from `low` to `high` as int8."""
    return te.min(te.max(value, te.const(low, value.dtype)), te.const(high, value.dtype)).astype("int8")


def rescale_of(factors: Doubles, zero_point: int, limits: tuple[int, int], what: str) -> Rescale:
    """The rescale by real factors, one for each channel. Raises ModelError for factors that 31 bits cannot hold."""
    largest = float(np.max(factors, initial=0.0))
    if not (np.all(np.isfinite(factors)) and np.all(factors >= 0) and 2.0**-31 <= largest < 2.0**29):
        raise ModelError(f"asked to rescale the sums of {what} by {largest:g}, which has to be a number from 2^-31 to 2^29; check the scales of its tensors")
    shift = HIGH_WORD if 2.0**-12 <= largest < 0.5 else 30 - math.frexp(largest)[1] + 1
    multipliers = np.minimum(np.rint(factors * 2.0**shift), 2.0**31 - 1)
    return Rescale(multipliers.astype(np.int32), shift, zero_point, *limits)
