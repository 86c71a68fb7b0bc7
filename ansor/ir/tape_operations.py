"""The operations of a tape, and what each does in NumPy."""

from __future__ import annotations

from enum import IntEnum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", int, NDArray[np.int64])


class Op(IntEnum):
    """What an operation does with its operands a, b, c. Flags are 0 and 1. tape.c relies on the numbering."""

    CONSTANT = 0  # constants[a]
    TABLE = 1  # tables[b + gene a], of c values
    ADD = 2
    SUBTRACT = 3
    MULTIPLY = 4
    DIVIDE = 5
    FLOOR_DIVIDE = 6
    CEIL_DIVIDE = 7
    REMAINDER = 8
    MINIMUM = 9
    MAXIMUM = 10
    LESS = 11
    LESS_EQUAL = 12
    EQUAL = 13
    BOTH = 14
    EITHER = 15
    NOT = 16
    FLOOR = 17
    CEIL = 18
    MAGNITUDE = 19
    LOG2 = 20
    LOG = 21
    LOG2_OF_ONE_MORE = 22  # log2(1 + a)
    EXCESS = 23  # a - b where that is positive, else 0
    POWER_OF_TWO = 24  # the largest power of two up to b (itself a power of two) that divides the integer a
    CHOOSE = 25  # b where a, else c
    MULTIPLY_ADD = 26  # a * b + c


def calculated(op: Op, *given: NDArray[np.float64]) -> NDArray[np.float64]:
    """One operation, in NumPy."""
    if op in _QUOTIENTS:
        a, b = given
        return _QUOTIENTS[op](a, np.where(b == 0, np.inf, b)) if op is not Op.REMAINDER else _remainder(a, b)
    if op is Op.CHOOSE:
        return np.where(given[0] != 0, given[1], given[2])
    if op is Op.MULTIPLY_ADD:
        return given[0] * given[1] + given[2]
    if op is Op.NOT:
        return 1.0 - given[0]
    if op is Op.LOG2_OF_ONE_MORE:
        return np.log2(given[0] + 1.0)
    if op is Op.EXCESS:
        return np.maximum(given[0] - given[1], 0.0)
    if op is Op.POWER_OF_TWO:
        return lowest_bit(given[0].astype(np.int64) | given[1].astype(np.int64)).astype(np.float64)
    result: NDArray[np.float64] = _FUNCTIONS[op](*given)
    return result.astype(np.float64, copy=False)


def lowest_bit(value: T) -> T:
    """The largest power of two that divides an integer; 0 for 0."""
    return value & -value


def _remainder(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(b == 0, 0.0, a - np.floor(a / np.where(b == 0, 1.0, b)) * b)


def _floor_divided(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.floor(a / b)


def _ceil_divided(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.ceil(a / b)


# The quotient of integers below 2 ** 53, rounded to nearest, never rounds up to an integer above it: floor and ceiling are exact.
_QUOTIENTS = {Op.FLOOR_DIVIDE: _floor_divided, Op.CEIL_DIVIDE: _ceil_divided, Op.REMAINDER: _remainder}
_FUNCTIONS = {
    Op.ADD: np.add, Op.SUBTRACT: np.subtract, Op.MULTIPLY: np.multiply, Op.DIVIDE: np.divide, Op.MINIMUM: np.minimum, Op.MAXIMUM: np.maximum,
    Op.LESS: np.less, Op.LESS_EQUAL: np.less_equal, Op.EQUAL: np.equal, Op.BOTH: np.minimum, Op.EITHER: np.maximum,
    Op.FLOOR: np.floor, Op.CEIL: np.ceil, Op.MAGNITUDE: np.abs, Op.LOG2: np.log2, Op.LOG: np.log,
}  # fmt: skip
