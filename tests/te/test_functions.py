"""Functions of one and of two scalars: what they give, compiled and evaluated, and what they do with integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import ansor
from ansor import te
from ansor.errors import DeclarationError
from ansor.ir.evaluate import evaluate
from ansor.te.expr import Const, Expr
from ansor.te.scalar import FLOAT_FUNCTIONS, PAIR_FUNCTIONS
from ansor.te.tensor import Tensor

NUMPY: dict[str, Any] = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "atan2": np.arctan2,
    "round": np.rint, "round_half_away": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5), "exp10": lambda x: 10.0**x,
    "rsqrt": lambda x: x**-0.5, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": np.vectorize(math.erf),
}  # fmt: skip


def functions() -> list[str]:
    return [*FLOAT_FUNCTIONS, *PAIR_FUNCTIONS]


@pytest.mark.compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_function_is_numpys(dtype: str) -> None:
    """Vectors included: 19 elements are two of them and a rest."""
    n = 19
    x, y = te.placeholder((n,), dtype, name="x"), te.placeholder((n,), dtype, name="y")
    outputs: list[Tensor] = []
    for name in functions():
        scale = 0.25 if name in ("asin", "acos", "atanh") else 1.0
        start = 1.0 if name == "acosh" else 0.0

        def body(i: Expr, name: str = name, scale: float = scale, start: float = start) -> Expr:
            operands = (x[i], y[i]) if name in PAIR_FUNCTIONS else (x[i] * scale + start,)
            found: Expr = getattr(te, name)(*operands)
            return found

        outputs.append(te.compute((n,), body, name=f"{name}_of"))
    rng = np.random.default_rng(0)
    inputs = {"x": np.concatenate([[0.5, 1.5, 2.5], rng.uniform(0.1, 3.5, n - 3)]).astype(dtype), "y": rng.uniform(-3.0, 3.0, n).astype(dtype)}
    found = ansor.auto_schedule([x, y, *outputs], trials=0, target="cpu -threads=1")(*inputs.values())
    evaluated = evaluate(outputs, inputs)
    for name, compiled, one in zip(functions(), found, evaluated, strict=True):
        wide = inputs["x"].astype("float64") * (0.25 if name in ("asin", "acos", "atanh") else 1.0) + (name == "acosh")
        operands = (inputs["x"], inputs["y"]) if name == "nextafter" else (wide, inputs["y"].astype("float64"))
        meaning: Any = NUMPY.get(name, getattr(np, name, None))
        wanted = meaning(*operands[: 2 if name in PAIR_FUNCTIONS else 1])
        tolerance = 2e-6 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(compiled, wanted, tolerance, tolerance, err_msg=name)
        np.testing.assert_allclose(one, wanted, tolerance, tolerance, err_msg=name)


@pytest.mark.compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_halves_remainders_and_what_is_no_number(dtype: str) -> None:
    values = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 7.25, -7.25, np.inf, -np.inf, np.nan, 0.0], dtype)
    n = len(values)
    x = te.placeholder((n,), dtype, name="x")
    with np.errstate(all="ignore"):
        cases = {
            "even": (te.round, np.rint(values)), "nearby": (te.nearbyint, np.rint(values)), "rest": (lambda v: v % 2.0, np.remainder(values, 2)),
            "below": (lambda v: v % -2.0, np.remainder(values, -2)), "quotient": (lambda v: v // 2, np.floor(values / 2)),
            "away": (te.round_half_away, np.array([1, 2, 3, -1, -2, -3, 7, -7, np.inf, -np.inf, np.nan, 0], dtype)),
            "of_c": (lambda v: te.fmod(v, 2.0), np.fmod(values, 2)), "half": (lambda v: te.div(v, 2.0), values / 2),
            "scaled": (lambda v: te.ldexp(v, 3), values * 8),
            "nan": (te.isnan, np.isnan(values)), "inf": (te.isinf, np.isinf(values)), "finite": (te.isfinite, np.isfinite(values)),
        }  # fmt: skip
    outputs = [te.compute((n,), lambda i, f=f: f(x[i]).astype("float32"), name=name) for name, (f, _) in cases.items()]
    found = ansor.auto_schedule([x, *outputs], trials=0, target="cpu -threads=1")(values)
    for name, compiled, evaluated, (_, wanted) in zip(cases, found, evaluate(outputs, {"x": values}), cases.values(), strict=True):
        np.testing.assert_array_equal(compiled, wanted.astype("float32"), name)
        np.testing.assert_array_equal(evaluated, wanted.astype("float32"), name)


def test_integers_become_floats_or_are_whole_already() -> None:
    i, n = te.Axis("i", 8), te.placeholder((8,), "int8", name="n")
    assert str(te.exp(n[i])) == "exp(float32(n[i]))" and str(te.exp(n[i] > 0)) == "exp(float32((n[i] > 0)))" and str(te.atan2(i, 1)) == "atan2(float32(i), 1.0)"
    assert str(te.floor(n[i])) == str(te.round(n[i])) == "n[i]" and str(te.div(i, 2)) == "truncdiv(i, 2)" and str(te.fmod(i, 3)) == "truncmod(i, 3)"
    for found, wanted in ((te.isnan(i), False), (te.isinf(i), False), (te.isfinite(i), True)):
        assert isinstance(found, Const) and found.value is wanted
    assert te.infinity().value == float("inf") and te.infinity("float64").dtype == "float64"
    with pytest.raises(DeclarationError, match="te.infinity of dtype int8, which has none; use te.max_value"):
        te.infinity("int8")
    with pytest.raises(DeclarationError, match="bitwise operators need integers"):
        te.popcount(te.const(1.0))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_bits_are_counted(dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = np.array([limits.min, 0, 1, 5, limits.max], dtype)
    x = te.placeholder((5,), dtype, name="x")
    (found,) = evaluate([te.compute((5,), lambda i: te.popcount(x[i]), name="bits")], {"x": values})
    assert found.dtype == dtype and found.tolist() == [(int(value) & (2**limits.bits - 1)).bit_count() for value in values]


@pytest.mark.compiler
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_leading_zeros_are_counted(dtype: str) -> None:
    limits = np.iinfo(dtype)
    values = np.array([limits.min, 0, 1, 5, limits.max // 2 + 1, limits.max], dtype)
    x = te.placeholder((6,), dtype, name="x")
    counted = te.compute((6,), lambda i: te.clz(x[i]), name="counted")
    wanted = [limits.bits - (int(value) & (2**limits.bits - 1)).bit_length() for value in values]
    assert counted.dtype == "int32"
    for found in (evaluate([counted], {"x": values})[0], ansor.auto_schedule([x, counted], trials=0, target="cpu -threads=1")(values)):
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(DeclarationError, match="te.clz of .* bitwise operators need integers"):
        te.clz(te.const(1.0))


def test_powers_of_two_are_as_wide_as_what_they_scale() -> None:
    x, n = te.placeholder((2,), "float64", name="x"), te.placeholder((2,), "int32", name="n")
    (found,) = evaluate([te.compute((2,), lambda i: te.ldexp(x[i], n[i]), name="scaled")], {"x": np.array([1.5, 3.0]), "n": np.array([900, -200], np.int32)})
    assert found.tolist() == [1.5 * 2.0**900, 3 * 2.0**-200]
    assert te.ldexp(n[te.Axis("i", 2)], 2).dtype == "float32"
