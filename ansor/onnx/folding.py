"""Computes nodes with constant operands ahead of time: exporters use them for shapes, paddings and slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ansor.errors import ModelError
from ansor.onnx.model_file import Array, Node

MOST = 1 << 26
"""The most elements of a computed constant."""


def folded(node: Node, operands: Sequence[Array | None], opset: int) -> tuple[Array, ...]:
    """The node's results, computed by the reference implementation in the package onnx. Raises ModelError if that fails."""
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    if _elements(node, operands) > MOST:
        raise ModelError(f"the {node} makes a constant of more than {MOST} elements; remove it from the model")
    names = ["" if one is None else f"x{place}" for place, one in enumerate(operands)]
    attributes: dict[str, Any] = {
        name: numpy_helper.from_array(value) if isinstance(value, np.ndarray) else value for name, value in node.attributes.items()
    }
    made = helper.make_node(node.op, names, [f"y{place}" if name else "" for place, name in enumerate(node.outputs)], **attributes)
    given = {name: one for name, one in zip(names, operands, strict=True) if one is not None}
    try:
        inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape) for name, one in given.items()]
        outputs = [helper.make_empty_tensor_value_info(name) for name in made.output if name]
        graph = helper.make_graph([made], "folded", inputs, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        return tuple(np.asarray(one) for one in ReferenceEvaluator(model).run(None, given))
    except Exception as error:  # the reference passes on any error of NumPy
        raise ModelError(f"the {node} of the model's constants cannot be computed: {' '.join(str(error).split())[:160]}; export the model again") from error


def _elements(node: Node, operands: Sequence[Array | None]) -> float:
    """How many elements the node makes, if it is an operator that may make many from few; 0 for all others."""
    given = [one.astype(np.float64) for one in operands if one is not None and one.dtype.kind in "iuf"]
    if node.op == "ConstantOfShape" and given:
        return float(np.prod(given[0]))
    if node.op in ("Expand", "Tile") and len(given) == 2:
        return float(np.prod(given[1])) * (given[0].size if node.op == "Tile" else 1)
    if node.op == "Range" and len(given) == 3 and given[2].size == 1 and given[2].item():
        return float(((given[1] - given[0]) / given[2]).item())
    return 0.0
