"""NumPy arrays as C arrays: every element is a literal with exactly its value. Floats of two bytes, which C99 does not have, are written as their bits."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.dialect import C_TYPES

WIDTH = 150
_LEAST = {-(2**31): "(-2147483647 - 1)", -(2**63): "(-9223372036854775807 - 1)"}
"""Numbers without a literal in C."""


BITS = ("float16", "bfloat16")
"""Dtypes that callers in C99 see as `unsigned short`."""


def element_type(dtype: str) -> str:
    """The C type of an element."""
    return C_TYPES["uint16" if dtype in BITS else dtype]


def declared(name: str, array: NDArray[np.generic], alignment: int) -> str:
    """The declaration of a constant array, aligned to that many bytes."""
    return f"const {element_type(array.dtype.name)} {name}[{array.size}] __attribute__((aligned({alignment})))"


def defined(name: str, array: NDArray[np.generic], alignment: int) -> list[str]:
    """Lines of its definition. Infinities and NaN are those of math.h."""
    return [f"{declared(name, array, alignment)} = {{", *_lines(_literals(array.reshape(-1))), "};"]


def _literals(flat: NDArray[np.generic]) -> Iterable[str]:
    if flat.dtype.name in BITS:
        return map(str, flat.view(np.uint16).tolist())
    if flat.dtype.kind == "f":
        suffix = "" if flat.dtype.itemsize == 8 else "f"
        return (_float(value, suffix) for value in flat.astype(np.float64).tolist())
    return (_LEAST.get(value, str(value)) for value in flat.astype(np.int64 if flat.dtype.kind == "b" else flat.dtype).tolist())


def _float(value: float, suffix: str) -> str:
    if np.isfinite(value):
        digits, power = value.hex().split("p")
        return f"{digits.rstrip('0') if '.' in digits else digits}p{power}{suffix}"
    return "NAN" if np.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"


def _lines(words: Iterable[str]) -> list[str]:
    lines, line = [], ""
    for word in words:
        if line and len(line) + len(word) + 2 > WIDTH:
            lines.append(line)
            line = ""
        line = f"{line} {word}," if line else f"  {word},"
    return [*lines, line] if line else lines
