"""How 32-bit sums become 8-bit numbers again: the one rounding rule of integer networks.

    out = min(max(floor((sum * multiplier + 2^(shift - 1)) / 2^shift) + zero_point, low), high)

The product has 64 bits, and the division is a shift that keeps the sign: halves are rounded up. This is what TensorFlow Lite calls single rounding. There is
one `shift` for an operator and a `multiplier` of 31 bits for each of its channels. The shift is 32, so that the upper word of the product is the result,
wherever the largest multiplier then has 20 bits or more (real factors from 2^-12 to 1/2); otherwise it is what makes the largest multiplier fill 31 bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor import te
from ansor.errors import ModelError
from ansor.te.expr import Expr

LEAST, MOST = -128, 127
HIGH_WORD = 32
Doubles = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rescale:
    """multipliers: int32 [channels], or [1] for all channels; shift: 1 to 62; the result is `zero_point` + the quotient, from `low` to `high`."""

    multipliers: NDArray[np.int32]
    shift: int
    zero_point: int
    low: int = LEAST
    high: int = MOST

    def apply(self, sums: NDArray[np.int64]) -> NDArray[np.int8]:
        """Sums [..., channels] of at most 32 bits as 8-bit numbers."""
        rounded = (sums * self.multipliers.astype(np.int64) + (1 << (self.shift - 1))) >> self.shift
        found: NDArray[np.int8] = np.clip(rounded + self.zero_point, self.low, self.high).astype(np.int8)
        return found

    def declared(self, total: Expr, multiplier: Expr) -> Expr:
        """The same of expressions of dtype int32; an int8."""
        half = te.const(1 << (self.shift - 1), "int64")
        wide = (total.astype("int64") * multiplier.astype("int64") + half) >> te.const(self.shift, "int64")
        dtype = "int32" if self.shift >= HIGH_WORD else "int64"  # sums and multipliers have 32 bits, so the upper word is enough
        return clamped(wide.astype(dtype) + te.const(self.zero_point, dtype), self.low, self.high)


def clamped(value: Expr, low: int, high: int) -> Expr:
    """An integer from `low` to `high` as int8."""
    return te.min(te.max(value, te.const(low, value.dtype)), te.const(high, value.dtype)).astype("int8")


def rescale_of(factors: Doubles, zero_point: int, limits: tuple[int, int], what: str) -> Rescale:
    """The rescale by real factors, one for each channel. Raises ModelError for factors that no 31 bits hold."""
    largest = float(np.max(factors, initial=0.0))
    if not (np.all(np.isfinite(factors)) and np.all(factors >= 0) and 2.0**-31 <= largest < 2.0**29):
        raise ModelError(f"asked to rescale the sums of {what} by {largest:g}, which has to be a number from 2^-31 to 2^29; check the scales of its tensors")
    shift = HIGH_WORD if 2.0**-12 <= largest < 0.5 else 30 - math.frexp(largest)[1] + 1
    multipliers = np.minimum(np.rint(factors * 2.0**shift), 2.0**31 - 1)
    return Rescale(multipliers.astype(np.int32), shift, zero_point, *limits)
