"""Rescaling on an ALU of 32 bits that adds, multiplies and shifts: the numbers of `integer.rescale`, every one, or a sentence why not.

    out = min(max(((((sum + bias) * multiplier) + added) >> shift) + zero_point, low), high)        all in 32 bits

What all multipliers and the shift have in common is a power of two, and is taken out, whatever h is:

    floor((s * m * 2^k + h) / 2^(k + n)) = floor((s * m + floor(h / 2^k)) / 2^n)

Scales that are powers of two leave multipliers of 1, or of a few bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.integer.rescale import Rescale

LIMIT = 1 << 31
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AluRescale:
    """bias, multipliers, added: int32 [channels]; None for multipliers that are all 1, and for additions of 0 only."""

    bias: NDArray[np.int32]
    multipliers: NDArray[np.int32] | None
    added: NDArray[np.int32] | None
    shift: int
    zero_point: int
    low: int
    high: int

    def apply(self, sums: NDArray[np.int32]) -> NDArray[np.int8]:
        """What the ALU makes of sums [..., channels], without the bias; wraps around at 32 bits as it does."""
        found = sums.astype(np.int32) + self.bias
        found = found if self.multipliers is None else found * self.multipliers
        found = (found if self.added is None else found + self.added) >> self.shift
        result: NDArray[np.int8] = np.clip(found + self.zero_point, self.low, self.high).astype(np.int8)
        return result


def alu_rescale(rescale: Rescale, bias: NDArray[np.int32], most: Numbers) -> AluRescale | str:
    """The same on the ALU, or why it is not possible. bias: int32 [channels]; most: the greatest magnitude of each channel's sums without it."""
    factors = np.broadcast_to(rescale.multipliers, bias.shape).astype(np.int64)
    out = min(_trailing_zeros(factors), rescale.shift)
    factors, half, shift = factors >> out, rescale.half >> out, rescale.shift - out
    whole = bias.astype(np.int64)
    divides = np.all(half % np.maximum(factors, 1) == 0) and factors.min() > 0
    if divides:  # in sums of the bias, where it costs nothing
        whole, half = whole + half // factors, 0
    reach = (most + np.abs(whole)) * factors + half
    if np.any(most + np.abs(whole) >= LIMIT) or np.any(reach >= LIMIT) or shift > 31:
        bits = int(np.ceil(np.log2(float(reach.max()) + 1))) + 1
        return f"its sums have {bits} bits when they are rescaled, and a core has 32: quantise with scales that are powers of two"
    multipliers = None if np.all(factors == 1) else factors.astype(np.int32)
    added = np.full(bias.shape, half, np.int32) if half else None
    return AluRescale(whole.astype(np.int32), multipliers, added, shift, rescale.zero_point, rescale.low, rescale.high)


def _trailing_zeros(factors: Numbers) -> int:
    """Of the number that divides all."""
    together = int(np.bitwise_or.reduce(factors.reshape(-1)))
    return (together & -together).bit_length() - 1 if together else 0
