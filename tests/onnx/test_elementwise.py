"""Elementwise operators, compared with the reference implementation of the package onnx."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansor.errors import ModelError
from ansor.graph.tasks import extract
from tests.onnx.single import POSITIVE, X, check, saved

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("op", ["Abs", "Ceil", "Cos", "Erf", "Floor", "HardSwish", "Neg", "Reciprocal", "Round", "Sign", "Softplus", "Softsign", "Tanh",
                                "Mish"])
def test_unary_operators(op: str, tmp_path: Path) -> None:
    check(tmp_path / "m.onnx", op, [X])


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Greater", "Max", "Min"])
def test_binary_operators(op: str, tmp_path: Path) -> None:
    check(tmp_path / "m.onnx", op, [X, POSITIVE[0, :, :1]])


def test_attributes(tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", "LeakyRelu", [X], alpha=0.2)
    check(tmp_path / "b.onnx", "HardSigmoid", [X], alpha=0.3, beta=0.4)
    check(tmp_path / "c.onnx", "Selu", [X])
    check(tmp_path / "d.onnx", "Gelu", [X], approximate="tanh")
    check(tmp_path / "e.onnx", "Clip", [X], [np.float32(-0.5), np.float32(0.5)])
    check(tmp_path / "f.onnx", "Clip", [X], [None, np.float32(0.5)])
    check(tmp_path / "g.onnx", "Pow", [POSITIVE], [np.float32(1.5)])
    check(tmp_path / "h.onnx", "Cast", [X], to=6)


def test_the_sign_of_nan_is_nan(tmp_path: Path) -> None:
    check(tmp_path / "m.onnx", "Sign", [np.array([np.nan, -2, 0, np.inf], np.float32)])


def test_a_bound_of_several_elements_is_refused(tmp_path: Path) -> None:
    saved(tmp_path / "m.onnx", "Clip", [X], [np.zeros(2, np.float32)])
    with pytest.raises(ModelError, match=r"has a bound of the shape \[2\]"):
        extract(tmp_path / "m.onnx")
