"""Reads a float ONNX file into plain values. In this package, only this module and `folding` import `onnx`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ModelError

Array = NDArray[np.generic]
Made = TypeVar("Made")
OLDEST = 13
"""The oldest version of ONNX's operators that is read as it is. Older files are converted to it."""


@dataclass(frozen=True, eq=False)
class Node:
    """An operator: its type, the names of its operands ('' for a missing one) and results, and its attributes as Python values and arrays."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, object]

    def __str__(self) -> str:
        return f"{self.op} {self.outputs[0] if self.outputs else ''}".strip()


@dataclass(frozen=True)
class Input:
    """An input array. None stands for an extent that the file leaves open."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class Model:
    """A graph of operators. `opset`: the version of ONNX's operators."""

    name: str
    opset: int
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Array]
    nodes: tuple[Node, ...]


def is_float(path: str | Path) -> bool:
    """Whether a file can be read and has no quantising operators."""
    try:
        import onnx

        nodes = onnx.load(str(path), load_external_data=False).graph.node
    except Exception:  # `read_model` reports what is wrong with the file
        return False
    return not any(node.op_type.startswith("QLinear") or node.op_type in ("QuantizeLinear", "DequantizeLinear") for node in nodes)


def read_model(path: str | Path) -> Model:
    """The graph of a file. Raises ModelError if it is not an ONNX file or has operators other than ONNX's own, and if `onnx` is not installed."""
    return read_onnx(path, lambda model: model_of(model, Path(path).stem))


def read_onnx(path: str | Path, make: Callable[[Any], Made]) -> Made:
    """What `make` makes of a file's protobuf. Raises ModelError if it is not an ONNX file, and if `onnx` is not installed."""
    try:
        import onnx
    except ImportError as error:
        raise ModelError(f"asked to read {path}, which needs the package onnx ({error}): pip install onnx") from error
    if Path(path).suffix == ".py":
        raise ModelError(f"asked to read {path} as an ONNX model; files are .onnx here: give a module, or use the command `ansor compile {path}`")
    if not Path(path).is_file():
        raise ModelError(f"asked to read {path}, which is not a file; give the path of an ONNX file")
    try:
        model = onnx.load(str(path))
        onnx.checker.check_model(str(path))  # by path, since it rejects models above 2 GiB in memory
        return make(model)
    except ModelError:
        raise
    except Exception as error:  # protobuf, the checker and damaged tensors each raise their own kind
        if missing := _missing_weights(Path(path)):
            raise ModelError(f"asked to read {path}, whose weights are in {missing}, which is missing; put that file beside it") from error
        cure = "export it again" if Path(path).suffix == ".onnx" else "files are .onnx here, and Python files are for the command `ansor compile`"
        raise ModelError(f"asked to read {path}, which is not a valid ONNX model: {' '.join(str(error).split())[:200]}; {cure}") from error


def _missing_weights(path: Path) -> Path | None:
    """The first file with weights of the model that does not exist, None if all do, or nothing can be read."""
    import onnx

    try:
        graph = onnx.load(str(path), load_external_data=False).graph
    except Exception:  # as in `read_onnx`
        return None
    constants = [*graph.initializer, *(each.t for node in graph.node for each in node.attribute if each.HasField("t"))]
    files = [path.parent / each.value for one in constants for each in one.external_data if each.key == "location"]
    return next((file for file in files if not file.is_file()), None)


def model_of(proto: Any, name: str = "network") -> Model:
    """The graph of an `onnx.ModelProto`."""
    from onnx import helper, numpy_helper

    proto = _of_known_version(proto)
    graph = proto.graph
    if graph.sparse_initializer:
        raise ModelError(f"the constant {graph.sparse_initializer[0].values.name} of the model is sparse, which is not supported; export it as a dense one")
    constants = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    nodes = []
    for one in graph.node:
        if one.domain not in ("", "ai.onnx"):
            raise ModelError(f"the model has {one.op_type} of the domain {one.domain}; only ONNX's own operators are read: export it without extensions")
        attributes = {each.name: _plain(one.op_type, helper.get_attribute_value(each)) for each in one.attribute}
        nodes.append(Node(one.op_type, tuple(one.input), tuple(one.output), attributes))
    inputs = tuple(_input(one) for one in graph.input if one.name not in constants)
    return Model(name, _opset(proto), inputs, tuple(one.name for one in graph.output), constants, tuple(nodes))


def _opset(proto: Any) -> int:
    return max((one.version for one in proto.opset_import if one.domain in ("", "ai.onnx")), default=1)


def _of_known_version(proto: Any) -> Any:
    from onnx import defs, version_converter

    if _opset(proto) > defs.onnx_opset_version():
        raise ModelError(
            f"the model is of version {_opset(proto)} of ONNX's operators, and the installed onnx supports versions up to {defs.onnx_opset_version()}; "
            "install a newer onnx, or export the model for an older version"
        )
    if _opset(proto) >= OLDEST:
        return proto
    try:
        return version_converter.convert_version(proto, OLDEST)
    except Exception as error:  # the converter may raise anything
        raise ModelError(
            f"the model is of version {_opset(proto)} of ONNX's operators, which onnx cannot convert to {OLDEST}: {' '.join(str(error).split())[:120]}; "
            "export it again"
        ) from error


def _plain(op: str, value: Any) -> object:
    from onnx import GraphProto, SparseTensorProto, TensorProto, numpy_helper

    if isinstance(value, GraphProto):
        raise ModelError(f"the model has {op}, a branch or loop that depends on values, which is not supported; export a straight-line model")
    if isinstance(value, SparseTensorProto):
        raise ModelError(f"the {op} of the model has a sparse constant, which is not supported; export it as a dense one")
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (int, float, str)) or not hasattr(value, "__iter__"):
        return value
    return [one.decode(errors="replace") if isinstance(one, bytes) else one for one in value]


def _input(one: Any) -> Input:
    from onnx import helper

    if not one.type.HasField("tensor_type"):
        raise ModelError(f"the input {one.name} is a sequence or optional, not a tensor; export the model with tensors")
    kind = one.type.tensor_type
    shape = tuple(each.dim_value if each.HasField("dim_value") else None for each in kind.shape.dim)
    return Input(one.name, shape, str(np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type))))
