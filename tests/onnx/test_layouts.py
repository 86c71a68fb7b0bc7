"""Operators that move elements, compared with the reference implementation of the package onnx."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ansor.errors import ModelError
from ansor.onnx.call import TABLE, Call
from ansor.onnx.model_file import Node
from tests.onnx.single import X, check, integers

pytestmark = pytest.mark.torch


def test_shapes(tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", "Reshape", [X], [integers(0, -1, 5)])
    check(tmp_path / "b.onnx", "Flatten", [X], axis=2)
    check(tmp_path / "c.onnx", "Unsqueeze", [X], [integers(0, -1)])
    check(tmp_path / "d.onnx", "Squeeze", [X[:, :1]], [integers(1)])
    check(tmp_path / "e.onnx", "Transpose", [X], perm=[0, 2, 3, 1])
    check(tmp_path / "f.onnx", "Transpose", [X])


def test_slices(tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", "Slice", [X], [integers(1, -1), integers(9, 0), integers(2, 3), integers(2, -2)])
    check(tmp_path / "b.onnx", "Slice", [X], [integers(-1), integers(-100), integers(3), integers(-1)])
    check(tmp_path / "c.onnx", "Split", [X], [integers(1, 3)], outputs=2, axis=2)
    check(tmp_path / "d.onnx", "Concat", [X, X[:, :1]], axis=1)
    check(tmp_path / "e.onnx", "Gather", [X], [integers(2, -1, 0)], axis=1)
    check(tmp_path / "f.onnx", "Gather", [X, integers(2, -1, 0)], axis=1)
    check(tmp_path / "g.onnx", "GatherElements", [X, np.full((2, 3, 2, 5), -1, np.int64)], axis=2)
    check(tmp_path / "h.onnx", "Trilu", [X], upper=0)


def test_operators_that_enlarge(tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", "Expand", [X[:, :1]], [integers(2, 1, 3, 1, 1)])
    check(tmp_path / "b.onnx", "Tile", [X], [integers(1, 2, 1, 3)])
    for mode in ("constant", "reflect", "edge"):
        check(tmp_path / "c.onnx", "Pad", [X], [integers(0, 0, 1, 2, 0, 1, 0, 1)], mode=mode)
    check(tmp_path / "d.onnx", "DepthToSpace", [np.tile(X, (1, 4, 1, 1))], blocksize=2)
    check(tmp_path / "e.onnx", "SpaceToDepth", [X[..., :4]], blocksize=2)
    check(tmp_path / "f.onnx", "OneHot", [integers(1, -2, 3)], [np.array(5), np.array([0.0, 2.0], np.float32)])


def test_padding_constants_are_exact(tmp_path: Path) -> None:
    check(tmp_path / "m.onnx", "Pad", [integers(1, 2)], [integers(1, 1), np.array(2**62 + 1)])


@pytest.mark.parametrize(("op", "axes", "said"), [("Unsqueeze", (0, 6), "the dimension 6"), ("Unsqueeze", (0, -6), "two of which are the same"),
                                                  ("Squeeze", (1,), "extents are not 1")])
def test_dimensions_out_of_range_are_refused(op: str, axes: tuple[int, ...], said: str) -> None:
    call = Call(Node(op, ("x", "axes"), ("y",), {}), [torch.from_numpy(X), integers(*axes)], 20)
    with pytest.raises(ModelError, match=said):
        TABLE[op](call)
