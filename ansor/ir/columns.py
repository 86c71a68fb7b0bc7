"""Arithmetic that is the same for one program, for a population, and for a population that does not exist yet.

A number of a program is a Python number for a single program, or where all programs of a population share it. Otherwise it is an array [n], or a recorded
`Column` that stands for one and is typed as that array. The functions here cover what operators cannot express; NumPy's own functions refuse recorded
columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ansor.ir.tape import Column
from ansor.ir.tape_operations import Op, lowest_bit

Int = int | NDArray[np.int64]
"""An integer of a program, or one for each of a population."""

Row = float | NDArray[np.float64]
"""A number for all programs of a population: the same for each, or float64 [n]."""

Flag = bool | NDArray[np.bool_]

MANY_AT_ONCE = (
    "it is computed for many programs at once: it may add and compare numbers, and use larger, smaller, choose and product of ansor.ir.columns, but not "
    "if, and, max() or int()"
)
"""What a function of columns may do, for messages."""

_NUMBER = (int, float)
_BOOL = (bool, np.bool_)
T = TypeVar("T", int | NDArray[np.int64], float | NDArray[np.float64])


def ceil_div(a: Int, b: Int) -> Int:
    """a / b rounded up."""
    return a.ceil_divided(b) if isinstance(a, Column) else -(-a // b)


def smaller(a: T, b: T) -> T:
    """Elementwise minimum."""
    if type(a) is Column:
        return a.minimum(b)
    if type(b) is Column:
        return b.minimum(a)
    return min(a, b) if isinstance(a, _NUMBER) and isinstance(b, _NUMBER) else np.minimum(a, b)


def larger(a: T, b: T) -> T:
    """Elementwise maximum."""
    if type(a) is Column:
        return a.maximum(b)
    if type(b) is Column:
        return b.maximum(a)
    return max(a, b) if isinstance(a, _NUMBER) and isinstance(b, _NUMBER) else np.maximum(a, b)


def choose(condition: Flag, then: T, otherwise: T) -> T:
    """`then` where `condition` holds."""
    if type(condition) is Column:
        return condition.chosen(then, otherwise)
    return (then if condition else otherwise) if isinstance(condition, _BOOL) else np.where(condition, then, otherwise)


def at_least(value: Row, low: float) -> Row:
    """The same value, which the caller knows to be no less than `low`: operations that this makes superfluous are not recorded."""
    return cast("NDArray[np.float64]", Column(value.recorder, value.place, low)) if isinstance(value, Column) and value.low < low else value


def excess(a: Row, b: Row) -> Row:
    """a - b where that is positive, else 0."""
    if not isinstance(a, Column) and isinstance(b, Column):
        return b.below(a)
    return a.above(b) if isinstance(a, Column) else larger(a - b, 0.0)


def multiply_add(a: Row, b: Row, c: Row) -> Row:
    """a * b + c."""
    return a.multiplied_added(b, c) if isinstance(a, Column) else a * b + c


def power_of_two_in(value: Row, most: float) -> Row:
    """The largest power of two up to `most` (itself a power of two) that divides an integer; `most` for 0."""
    if isinstance(value, Column):
        return value.power_of_two(most)
    return float(lowest_bit(int(value) | int(most))) if isinstance(value, _NUMBER) else lowest_bit(value.astype(np.int64) | int(most)).astype(np.float64)


def product(values: Iterable[Int]) -> Int:
    """Product of all, 1 for none."""
    result: Int = 1
    for value in values:
        result = result * value
    return result


def magnitude(value: T) -> T:
    """Absolute value."""
    return abs(value)  # type: ignore[return-value]  # abs of a union is taken for an object


def negated(flag: Flag) -> Flag:
    """The negation of a flag."""
    return not flag if isinstance(flag, _BOOL) else ~flag


def anywhere(flag: Flag) -> bool:
    """Whether a flag holds for any program; for a recorded flag, whether it may."""
    return isinstance(flag, Column) or (bool(flag.any()) if isinstance(flag, np.ndarray) else bool(flag))


def surely_somewhere(flag: Flag) -> bool:
    """Whether a flag is known to hold for some program; False for a recorded flag, of which nothing is known."""
    return not isinstance(flag, Column) and bool(np.any(flag))


def row(value: Int | Flag) -> Row:
    """A number or a flag as floating point, exact up to 2 ** 53."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float64)
    return value if isinstance(value, Column) else float(value)


def floor(value: Row) -> Row:
    """Rounded down."""
    return value.of_one(Op.FLOOR, float(np.floor(value.low))) if isinstance(value, Column) else np.floor(value)


def ceil(value: Row) -> Row:
    """Rounded up."""
    return value.of_one(Op.CEIL, float(np.ceil(value.low))) if isinstance(value, Column) else np.ceil(value)


def log2(value: Row) -> Row:
    """Binary logarithm of a positive number."""
    return value.of_one(Op.LOG2, 0.0 if value.low >= 1 else -math.inf) if isinstance(value, Column) else np.log2(value)


def log2_of_one_more(value: Row) -> Row:
    """Binary logarithm of 1 + value, which is 0 or more."""
    return value.of_one(Op.LOG2_OF_ONE_MORE, 0.0) if isinstance(value, Column) else np.log2(value + 1.0)


def log(value: Row) -> Row:
    """Natural logarithm of a positive number."""
    return value.of_one(Op.LOG, 0.0 if value.low >= 1 else -math.inf) if isinstance(value, Column) else np.log(value)
