"""Operators as declarations for a core: what those mean, and what their programs compute, against the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from ansor.integer.operators import Add, AveragePool, Concat, Convolution, Dense, MaxPool, Operator, Reshape, Table, Window
from ansor.integer.reference import computed
from ansor.integer.rescale import rescale_of
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.offload.forms import Form, OperatorInput, form_of, on_device
from tests.integer.networks import convolutions, others

SHAPE = (1, 6, 6, 8)


def check(operator: Operator, shapes: tuple[tuple[int, ...], ...], least: int = -128) -> str:
    """'' where the declaration gives the bytes of the reference; why there is none."""
    form = form_of(operator, [OperatorInput(shape, least) for shape in shapes])
    if isinstance(form, str):
        return form
    generator = np.random.default_rng(1)
    stored = [generator.integers(least, 128, shape).astype(np.int8) for shape in shapes]
    named = {tensor.name: _second(one) for tensor, one in zip(form.tensors, stored, strict=False)}
    (found,) = evaluate(Dag(form.tensors).outputs, {**named, **form.constants})
    right = computed(operator, *stored)
    assert form.tensors[-1].shape == on_device(right.shape) and found.dtype == np.int8
    np.testing.assert_array_equal(found, _second(right))
    return ""


def _second(array: Any) -> Any:
    return array.transpose(0, 3, 1, 2) if array.ndim == 4 else array


@given(convolutions())
@settings(deadline=None)
def test_convolutions(drawn: tuple[Convolution, tuple[int, ...]]) -> None:
    operator, shape = drawn
    refused = check(operator, (shape,))
    assert not refused or refused.startswith("its sums have") and operator.rescale.shift > 40


@given(others())
@settings(deadline=None)
def test_others(drawn: tuple[Operator, tuple[tuple[int, ...], ...]]) -> None:
    operator, shapes = drawn
    refused = check(operator, shapes)
    kinds = operator.kind in ("table", "transpose") or refused.startswith("some of its windows")
    assert not refused or kinds or refused.startswith("its sums have") and isinstance(operator, Dense | AveragePool) and operator.rescale.shift > 40


@pytest.mark.parametrize(("multipliers", "offset", "shift"), [((1 << 18, 1 << 18), 0, 18), ((1 << 20, 3 << 17), 1 << 19, 20), ((-12345, 1999999), 7777777, 20)])
def test_additions_of_any_scales(multipliers: tuple[int, int], offset: int, shift: int) -> None:
    assert not check(Add("z", ("x", "y"), multipliers, offset, shift, -3, -100, 90), (SHAPE, SHAPE))


def test_what_a_core_does_not_compute_is_said() -> None:
    weights, one = np.ones((3, 3, 8, 8), np.int8), rescale_of(np.full(8, 2.0**-9), 0, (-128, 127), "a test")
    padded = Convolution("y", ("x",), weights, np.zeros(8, np.int32), one, Window((3, 3), padding=(1, 1, 1, 1), filling=-3))
    far = replace(padded, window=Window((3, 3), padding=(16, 0, 0, 0)))
    odd = replace(padded, window=Window((3, 3)), rescale=rescale_of(np.full(8, 2.0**-22 * 1.23), 0, (-128, 127), "a test"))
    asked: list[tuple[Operator, str]] = [
        (far, "it pads by 16, but a core pads by at most 15"),
        (odd, "its sums have 43 bits when they are rescaled, too many for two 32-bit products: quantise with scales that are powers of two"),
        (MaxPool("y", ("x",), Window((1, 1), padding=(1, 0, 0, 0))), "some of its windows contain only padding"),
        (Table("y", ("x",), np.zeros(256, np.int8)), "a core has no table"),
        (Concat("y", ("x", "x"), 3), "a core has no concat"),
        (Reshape("y", ("x",), (1, 288)), "it changes the order of channels of [1, 6, 6, 8]"),
    ]  # fmt: skip
    for operator, why in asked:
        assert form_of(operator, [OperatorInput(SHAPE, -128)] * len(operator.inputs)) == why
    points = form_of(Reshape("y", ("x",), (1, 8, 1, 1)), [OperatorInput((1, 1, 1, 8), -128)])
    assert isinstance(points, Form) and points.renames
    flat = form_of(Reshape("y", ("x",), (1, 8)), [OperatorInput((1, 1, 1, 8), -128)])
    assert isinstance(flat, Form) and flat.renames
