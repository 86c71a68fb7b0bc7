"""Converts between an index into a product of tables and its digits. The first digit varies fastest.

Sizes [2, 7, 9, 2] and index 193 give the digits [1, 5, 4, 1]. Source: AutoTVM 0.9, `knob2point` and `point2knob`.
"""

from collections.abc import Sequence
from math import prod

from ansor.errors import ConfigError


def point2knob(p: int, dims: Sequence[int]) -> list[int]:
    """The digits of index `p`, one per size in `dims`. Raises IndexError unless p is in [0, product of dims)."""
    if not 0 <= p < prod(dims):
        raise IndexError(f"asked for point {p} of a space of {prod(dims)}; points run from 0 to {prod(dims) - 1}")
    digits = []
    for size in dims:
        p, digit = divmod(p, size)
        digits.append(digit)
    return digits


def knob2point(knob: Sequence[int], dims: Sequence[int]) -> int:
    """The index of the digits `knob`; the inverse of `point2knob`. Raises ConfigError if their number differs from `dims`, or a digit is too large."""
    if len(knob) != len(dims) or not all(0 <= digit < size for digit, size in zip(knob, dims, strict=True)):
        raise ConfigError(f"asked for the point of digits {list(knob)} over sizes {list(dims)}; give one digit per size, each below its size")
    point = 0
    for digit, size in zip(reversed(knob), reversed(dims), strict=True):
        point = point * size + digit
    return point
