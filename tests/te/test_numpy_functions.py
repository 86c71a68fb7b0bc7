"""Functions of NumPy and `math` on what is being declared: operators are understood, all else is refused with te's own name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ansor import te
from ansor.errors import DeclarationError

x: Any = te.placeholder((4,), name="x")
n: Any = te.placeholder((4,), "int32", name="n")


@pytest.mark.parametrize(
    "function, sentence",
    [
        (lambda: te.compute((4,), lambda i: np.exp(x[i])), r"asked for np\.exp of `x\[i\]`.*use te\.exp$"),
        (lambda: np.maximum(x[0], 0.0), r"use te\.max$"),
        (lambda: np.arcsin(x[0]), r"use te\.asin$"),
        (lambda: np.absolute(n[0]), r"use te\.abs$"),
        (lambda: np.exp(x), r"np\.exp of tensor x.*use te\.nn\.exp$"),
        (lambda: np.sum(x), r"np\.add\.reduce of tensor x.*use te\.nn\.sum$"),
        (lambda: np.cbrt(x[0]), "use the functions in te and te.nn"),
        (lambda: math.exp(x[0]), "such as te.exp"),
        (lambda: float(x), "the number of tensor x"),
        (lambda: int(n[0]), "the number of `n"),
        (lambda: te.sum(3), r"te\.sum of `3` over no axis; give axis="),
        (lambda: te.prod(x[0]), r"te\.prod of `x\[0\]` over no axis"),
    ],
)
def test_other_functions_are_refused(function: Callable[[], object], sentence: str) -> None:
    with pytest.raises(DeclarationError, match=sentence):
        function()


@pytest.mark.parametrize(
    "function, wanted",
    [
        (lambda: np.float32(2) * x[0], "(2.0 * x[0])"),
        (lambda: np.int64(3) - n[0], "(3 - n[0])"),
        (lambda: np.float32(2) == x[0], "(x[0] == 2.0)"),
        (lambda: np.float32(2) != x[0], "(x[0] != 2.0)"),
        (lambda: np.float64(2) ** x[0], "pow(2.0, x[0])"),
        (lambda: np.add(x[0], x[1]), "(x[0] + x[1])"),
        (lambda: np.int32(7) // n[1], "(7 // n[1])"),
        (lambda: np.float32(1) == x, "False"),
    ],
)
def test_operators_of_numpys_numbers_build_expressions(function: Callable[[], object], wanted: str) -> None:
    assert str(function()) == wanted
