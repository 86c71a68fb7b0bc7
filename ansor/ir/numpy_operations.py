"""The meaning of operations and functions in NumPy, for both oracles: loops and declarations.

Integers wrap. Division by zero gives 0, and so does its remainder; the least integer divided by -1 is itself. A shift beyond the width, or by a negative
number, leaves only copies of the sign bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # of the dtype that the operands have


def _truncated_quotient(a: Array, b: Array) -> Array:
    quotient, remainder = np.divmod(a, b)
    return np.asarray(quotient + ((remainder != 0) & ((a < 0) != (b < 0))), dtype=a.dtype)


def _away_from_zero(x: Array) -> Array:
    magnitude = np.fabs(x)
    return np.asarray(np.copysign(np.floor(magnitude + (magnitude % 1 >= 0.5)), x))


_erf = np.frompyfunc(math.erf, 1, 1)

FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(x.dtype.type(10), x), "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": lambda x: np.asarray(_erf(x)).astype(x.dtype),
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "round_half_away": _away_from_zero, "trunc": np.trunc, "fabs": np.fabs,
    "pow": np.power, "fmod": np.fmod, "hypot": np.hypot, "copysign": np.copysign, "nextafter": np.nextafter,
}  # fmt: skip
"""Functions of floating-point numbers by name."""

OPERATIONS: Mapping[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "floordiv": np.floor_divide, "floormod": np.remainder,
    "truncdiv": _truncated_quotient, "truncmod": np.fmod, "min": np.minimum, "max": np.maximum, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "and": np.logical_and, "or": np.logical_or,
    "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor, "shl": np.left_shift, "shr": np.right_shift,
}  # fmt: skip
"""Operations on two operands of one dtype by name."""
