"""Reductions and norms, compared with the reference implementation of the package onnx."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ansor.errors import ModelError
from ansor.onnx.call import TABLE, Call
from ansor.onnx.model_file import Node
from ansor.onnx.reductions import REDUCE
from tests.onnx.single import POSITIVE, X, check, integers

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("op", REDUCE)
def test_reductions(op: str, tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", op, [POSITIVE], [integers(1, -1)], keepdims=0)
    check(tmp_path / "b.onnx", op, [POSITIVE])


def test_softmax_and_arg_reductions(tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", "Softmax", [X], axis=1)
    check(tmp_path / "b.onnx", "LogSoftmax", [X])
    check(tmp_path / "c.onnx", "ArgMax", [X], axis=2, keepdims=0)
    check(tmp_path / "d.onnx", "ArgMin", [np.round(X)], axis=-1, select_last_index=1)
    check(tmp_path / "e.onnx", "CumSum", [X], [np.array(1, dtype=np.int64)], reverse=1, exclusive=1)


@pytest.mark.parametrize("largest", [1e20, np.inf])
@pytest.mark.parametrize("reverse", [0, 1])
def test_an_exclusive_sum_keeps_small_elements_next_to_large_ones(largest: float, reverse: int, tmp_path: Path) -> None:
    check(tmp_path / "m.onnx", "CumSum", [np.array([1, largest, 3], np.float32)], [np.array(0)], exclusive=1, reverse=reverse)


def test_norms(tmp_path: Path) -> None:
    scale, shift = POSITIVE[0, :, 0, 0], X[0, :, 0, 0]
    check(tmp_path / "a.onnx", "BatchNormalization", [X], [scale, shift, shift, scale])
    check(tmp_path / "b.onnx", "LayerNormalization", [X], [POSITIVE[0, 0, 0], X[0, 0, 0]])
    check(tmp_path / "b.onnx", "LayerNormalization", [X], [POSITIVE[0, 0], X[0, 0, 0]], axis=2)
    check(tmp_path / "c.onnx", "InstanceNormalization", [X], [scale, shift])
    check(tmp_path / "d.onnx", "LRN", [np.concatenate([X, X[:1]])], size=3)


def test_a_dimension_out_of_range_is_refused() -> None:
    call = Call(Node("RMSNormalization", ("x", "scale"), ("y",), {"axis": 7}), [torch.from_numpy(X), X[0, 0, 0]], 23)
    with pytest.raises(ModelError, match="has the dimension 7, which has to be from -4 to 3"):
        TABLE["RMSNormalization"](call)
