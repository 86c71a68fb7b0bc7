"""Convolutions, pooling and products, compared with the reference implementation of the package onnx."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ansor.errors import ModelError
from ansor.graph.tasks import extract
from ansor.onnx.module import read_onnx
from tests.onnx.single import X, check, saved

pytestmark = pytest.mark.torch
WEIGHT = np.random.default_rng(1).normal(size=(6, 3, 3, 3)).astype(np.float32)


def test_convolutions(tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", "Conv", [X], [WEIGHT, WEIGHT[:, 0, 0, 0]], pads=[1, 1, 1, 1], strides=[2, 1])
    check(tmp_path / "b.onnx", "Conv", [X], [WEIGHT], auto_pad="SAME_UPPER", strides=[2, 2])
    check(tmp_path / "c.onnx", "Conv", [X], [WEIGHT], pads=[2, 0, 1, 1], dilations=[2, 1])
    check(tmp_path / "d.onnx", "ConvTranspose", [X], [WEIGHT.transpose(1, 0, 2, 3)], strides=[2, 2], output_padding=[1, 1], pads=[1, 1, 1, 1])


@pytest.mark.parametrize(("padding", "pads"), [("NOTSET", [1, 1, 0, 0]), ("SAME_LOWER", [1, 1, 0, 0]), ("SAME_UPPER", [0, 0, 1, 1])])
def test_odd_padding_of_a_given_output_shape(padding: str, pads: list[int], tmp_path: Path) -> None:
    """As in ONNX: to the front, except for SAME_UPPER."""
    weight = WEIGHT.transpose(1, 0, 2, 3)
    wanted = extract(saved_at(tmp_path / "a.onnx", weight, strides=[2, 2], pads=pads), ())
    found = extract(saved_at(tmp_path / "b.onnx", weight, strides=[2, 2], output_shape=[8, 10], auto_pad=padding), ())
    assert found.graph.nodes == wanted.graph.nodes


def saved_at(path: Path, weight: Any, **attributes: Any) -> Path:
    saved(path, "ConvTranspose", [X], [weight], **attributes)
    return path


def test_unknown_attribute_values_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "m.onnx", "Conv", [X], [WEIGHT], auto_pad="SAME")
    with pytest.raises(ModelError, match="has auto_pad=SAME, which has to be one of NOTSET, SAME_UPPER, SAME_LOWER, VALID"):
        extract(tmp_path / "m.onnx")


@pytest.mark.parametrize("attributes", [{}, {"pads": [1, 1, 1, 1]}, {"auto_pad": "SAME_UPPER"}, {"ceil_mode": 1}])
def test_pools(attributes: dict[str, Any], tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", "MaxPool", [X], kernel_shape=[3, 2], strides=[2, 2], **attributes)
    check(tmp_path / "b.onnx", "AveragePool", [X], kernel_shape=[3, 2], strides=[2, 2], **attributes)


def test_products(tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", "Gemm", [X[0, 0]], [X[0, 1], X[0, 0, 0, :4]], transB=1, alpha=0.5)
    check(tmp_path / "b.onnx", "MatMul", [X], [X[0, 0].T.copy()])


def test_products_of_integers_stay_integers(tmp_path: Path) -> None:
    whole = np.arange(9, dtype=np.int32).reshape(3, 3)
    saved(tmp_path / "m.onnx", "Gemm", [whole], [whole, whole[0]], beta=2.0)
    found = read_onnx(tmp_path / "m.onnx")[0](torch.from_numpy(whole)).numpy()
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, whole @ whole + 2 * whole[0])
