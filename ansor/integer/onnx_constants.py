"""Computes ONNX nodes with constant inputs when a file is read. Exporters write such nodes to compute shapes and paddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ansor.errors import ModelError
from ansor.integer.onnx_file import Array, OnnxNode

FOLDED = ("ConstantOfShape", "Concat", "Slice", "Cast", "Transpose", "Reshape", "Gather", "Unsqueeze", "Squeeze", "Add", "Sub", "Mul", "Div", "Identity")
MOST = 1 << 24
"""The most elements of a folded constant: more than a board can hold."""


def folded(node: OnnxNode, inputs: Sequence[Array]) -> Array:
    """The value of a node with constant inputs, by the reference evaluator of the package onnx. Raises ModelError for more elements than `MOST`."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    if sum(one.size for one in inputs) > MOST or node.op == "ConstantOfShape" and np.prod(inputs[0].astype(np.float64)) > MOST:
        raise ModelError(f"the {node} makes a constant of more than {MOST} elements")
    names = [f"x{place}" for place in range(len(inputs))]
    attributes: dict[str, Any] = {name: _proto(value) for name, value in node.attributes.items()}
    made = helper.make_node(node.op, names, ["y"], **attributes)
    (found,) = ReferenceEvaluator(made).run(None, dict(zip(names, inputs, strict=True)))
    return np.asarray(found)


def _proto(value: object) -> object:
    from onnx import numpy_helper

    return numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value
