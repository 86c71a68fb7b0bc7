"""Convolutions, pools and products beside the reference of the package onnx."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.onnx.single import X, check

pytestmark = pytest.mark.torch
WEIGHT = np.random.default_rng(1).normal(size=(6, 3, 3, 3)).astype(np.float32)


def test_convolutions(tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", "Conv", [X], [WEIGHT, WEIGHT[:, 0, 0, 0]], pads=[1, 1, 1, 1], strides=[2, 1])
    check(tmp_path / "b.onnx", "Conv", [X], [WEIGHT], auto_pad="SAME_UPPER", strides=[2, 2])
    check(tmp_path / "c.onnx", "Conv", [X], [WEIGHT], pads=[2, 0, 1, 1], dilations=[2, 1])
    check(tmp_path / "d.onnx", "ConvTranspose", [X], [WEIGHT.transpose(1, 0, 2, 3)], strides=[2, 2], output_padding=[1, 1], pads=[1, 1, 1, 1])


@pytest.mark.parametrize("attributes", [{}, {"pads": [1, 1, 1, 1]}, {"auto_pad": "SAME_UPPER"}, {"ceil_mode": 1}])
def test_pools(attributes: dict[str, Any], tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", "MaxPool", [X], kernel_shape=[3, 2], strides=[2, 2], **attributes)
    check(tmp_path / "b.onnx", "AveragePool", [X], kernel_shape=[3, 2], strides=[2, 2], **attributes)


def test_products(tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", "Gemm", [X[0, 0]], [X[0, 1], X[0, 0, 0, :4]], transB=1, alpha=0.5)
    check(tmp_path / "b.onnx", "MatMul", [X], [X[0, 0].T.copy()])
