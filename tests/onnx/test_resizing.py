"""Resizing, compared with the reference implementation of the package onnx."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ansor.errors import ModelError
from ansor.graph.tasks import extract
from ansor.onnx.resizing import ROUNDED
from tests.onnx.single import X, check, integers, saved

pytestmark = pytest.mark.torch
SCALES = np.array([1, 1, 2, 1.6], np.float32)


@pytest.mark.parametrize("places", ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
def test_coordinate_modes(places: str, tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", "Resize", [X], [None, SCALES], mode="linear", coordinate_transformation_mode=places)
    check(tmp_path / "b.onnx", "Resize", [X], [None, None, integers(2, 3, 3, 7)], mode="linear", coordinate_transformation_mode=places)
    check(tmp_path / "c.onnx", "Resize", [X], [None, SCALES], coordinate_transformation_mode=places)


@pytest.mark.parametrize("rounding", ROUNDED)
def test_rounding(rounding: str, tmp_path: Path) -> None:
    check(tmp_path / "a.onnx", "Resize", [X], [None, SCALES], coordinate_transformation_mode="asymmetric", nearest_mode=rounding)


def test_unsupported_forms_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "m.onnx", "Resize", [X], [None, SCALES], mode="cubic", coordinate_transformation_mode="asymmetric")
    with pytest.raises(ModelError, match="the Resize y0 of the model has the mode cubic with asymmetric"):
        extract(tmp_path / "m.onnx")
    saved(tmp_path / "m.onnx", "Resize", [(X * 10).astype(np.int8)], [None, SCALES], mode="linear", coordinate_transformation_mode="asymmetric")
    with pytest.raises(ModelError, match="has the mode linear on integers"):
        extract(tmp_path / "m.onnx")
