"""What a person gives as an int8 network, as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ansor.errors import ModelError
from ansor.integer.from_onnx import from_onnx
from ansor.integer.network import IntegerNetwork


def network_of(model: object, calibration: Sequence[object] = (), name: str = "") -> IntegerNetwork:
    """The path of an ONNX file in QDQ format, a graph that PT2E quantised (what `convert_pt2e` returned, or its export), a PyTorch module with calibration
    inputs, or an integer network as it is; under `name` where one is given.

    Raises ModelError for what is none of them, and where it cannot be read.
    """
    if isinstance(model, IntegerNetwork):
        return replace(model, name=name or model.name)
    if isinstance(model, (str, Path)):
        if len(calibration):
            raise ModelError(f"asked to read {model} with calibration inputs, but an ONNX file is quantised already; leave them out, or give a PyTorch module")
        found = from_onnx(model)
        return replace(found, name=name or found.name)
    from ansor.integer.from_pt2e import from_pt2e, is_pt2e
    from ansor.integer.from_torch import from_torch

    if is_pt2e(model):
        if len(calibration):
            raise ModelError("asked to read a graph that PT2E has quantised with calibration inputs, but it is quantised already; leave them out")
        return from_pt2e(model, name or "network")
    return from_torch(model, calibration, name or type(model).__name__.lower())
