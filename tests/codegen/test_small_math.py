"""Functions of processors without a library, held against NumPy's."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.codegen.dialect import BUILT_IN, FUNCTIONS, PAIRS, Helpers
from ansor.codegen.small_math import BODIES, OWN_FLOAT
from ansor.codegen.toolchain import compile_shared, find_compiler

ORACLES: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("expm1", "log1p", "sinh", "cosh", "tanh", "hypot", "rint", "nextafter")},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asinh", "acosh", "atanh", "asin", "acos", "atan", "atan2")},
    "pow": np.power, "erf": np.vectorize(math.erf, otypes=[np.float64]),
}  # fmt: skip
EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 4.0, 1e-9, -1e-300, 1e300, 5e-324, math.inf, -math.inf, math.nan, 2.5, -2.5, 22.0, 6.0, 709.0)


def numbers() -> NDArray[np.float64]:
    random = np.random.default_rng(0)
    return np.concatenate([EDGES, random.uniform(-1, 1, 400), random.normal(0, 4, 400), random.uniform(-1, 1, 300) * 10.0 ** random.integers(-12, 12, 300)])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    helpers, lines = Helpers(hosted=False), []
    for name in ORACLES:
        for dtype, kind in (("float64", "double"), ("float32", "float")):
            word = next((one for one, c in FUNCTIONS.items() if c == name), name)
            called = helpers.call(word, dtype, 1) if name != "tanh" and name != "erf" else helpers._library(name, "f" if kind == "float" else "")
            arguments = "x[i], y[i]" if name in PAIRS else "x[i]"
            head = f"void test_{name}_{dtype}(const {kind} *x, const {kind} *y, {kind} *z, int n)"
            lines.append(f"{head} {{ for (int i = 0; i < n; ++i) z[i] = {called}({arguments}); }}")
    path: Path = tmp_path_factory.mktemp("math") / "functions.so"
    made = compile_shared(find_compiler("zig"), [BUILT_IN + helpers.text() + "\n" + "\n".join(lines)], path)
    assert made.ok, made.text
    return ctypes.CDLL(str(path))


@pytest.mark.compiler
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", sorted(ORACLES))
def test_functions_are_those_of_numpy(name: str, dtype: str, library: ctypes.CDLL) -> None:
    with np.errstate(over="ignore"):
        x = np.concatenate([numbers(), np.repeat(EDGES, len(EDGES))]).astype(dtype)
        y = np.concatenate([np.random.default_rng(1).permutation(numbers()), np.tile(EDGES, len(EDGES))]).astype(dtype)
    found = np.empty_like(x)
    getattr(library, f"test_{name}_{dtype}")(*(ctypes.c_void_p(one.ctypes.data) for one in (x, y, found)), x.size)
    with np.errstate(all="ignore"):
        given = (x, y) if name in PAIRS else (x,)
        exact = name in OWN_FLOAT
        right = ORACLES[name](*given) if exact else ORACLES[name](*(one.astype(np.float64) for one in given)).astype(dtype)
        fine = np.isclose(found, right, rtol=0 if exact else 1e-13 if dtype == "float64" else 1.2e-7, atol=1e-307 if dtype == "float64" else 0, equal_nan=True)
        same_sign = np.isnan(right) | (np.signbit(found) == np.signbit(right))
    wrong = ~(fine & same_sign)
    assert not wrong.any(), list(zip(x[wrong][:8], y[wrong][:8], found[wrong][:8], right[wrong][:8], strict=True))


def test_every_function_of_declarations_is_brought_or_written() -> None:
    brought = {line.split()[1] for line in BUILT_IN.splitlines()}
    assert {*FUNCTIONS.values()} <= brought | {*BODIES} | {*OWN_FLOAT}
