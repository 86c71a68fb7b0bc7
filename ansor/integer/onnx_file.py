"""Reads ONNX files of int8 networks as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ModelError
from ansor.onnx.model_file import read_onnx

Array = NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class OnnxNode:
    """An operator: its type, the names of its inputs ('' for an omitted one) and outputs, and its attributes as Python values and arrays.

    label: the model's name for the operator, if that is not the type.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, object]
    label: str = ""

    def __str__(self) -> str:
        return f"{self.label or self.op} {self.outputs[0] if self.outputs else ''}".strip()

    def numbers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """An attribute that is a list of integers."""
        value = self.attributes.get(name, default)
        if not isinstance(value, (list, tuple)) or not all(isinstance(one, int) for one in value):
            raise ModelError(f"the {self} has {name}={value!r:.60}, which has to be a list of integers")
        return tuple(value)

    def number(self, name: str, default: float) -> float:
        """An attribute that is a number."""
        value = self.attributes.get(name, default)
        if not isinstance(value, (int, float)):
            raise ModelError(f"the {self} has {name}={value!r:.60}, which has to be a number")
        return value


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """A graph of ONNX operators. inputs: shapes and dtypes by name; a first dimension that the file leaves open is 1. constants: initialisers."""

    name: str
    inputs: Mapping[str, tuple[tuple[int, ...], str]]
    outputs: tuple[str, ...]
    constants: Mapping[str, Array]
    nodes: tuple[OnnxNode, ...]


def read_file(path: str | Path) -> OnnxGraph:
    """The graph of a file. Raises ModelError if it is not an ONNX file, or `onnx` is not installed."""
    return read_onnx(path, lambda model: _graph(model.graph, Path(path).stem))


def _graph(graph: Any, name: str) -> OnnxGraph:
    from onnx import helper, numpy_helper

    constants = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    inputs = {one.name: _value(one) for one in graph.input if one.name not in constants}
    nodes = []
    for one in graph.node:
        if one.domain not in ("", "ai.onnx"):
            raise ModelError(f"the node {one.op_type} {one.output[0]} is of the domain {one.domain}; only ONNX's own operators are read: export in QDQ format")
        attributes = {each.name: _plain(helper.get_attribute_value(each)) for each in one.attribute}
        nodes.append(OnnxNode(one.op_type, tuple(one.input), tuple(one.output), attributes))
    return OnnxGraph(name, inputs, tuple(one.name for one in graph.output), constants, tuple(nodes))


def _plain(value: Any) -> object:
    from onnx import TensorProto, numpy_helper

    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return list(value) if not isinstance(value, (int, float, str)) and hasattr(value, "__iter__") else value


def _value(one: Any) -> tuple[tuple[int, ...], str]:
    from onnx import helper

    kind = one.type.tensor_type
    shape = [dimension.dim_value for dimension in kind.shape.dim]
    if shape and shape[0] == 0:
        shape[0] = 1
    if not shape or min(shape) < 1:
        raise ModelError(f"the input {one.name} has the shape {shape}, where 0 is an open dimension; fix its shape before export")
    return tuple(shape), str(np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type)))
