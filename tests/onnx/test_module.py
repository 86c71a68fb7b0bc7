"""Files as modules: what is folded, what they are called with, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

import ansor
from ansor.errors import ModelError
from ansor.onnx.model_file import is_float, read_model
from ansor.onnx.module import read_onnx
from tests.onnx.single import X, integers, saved

pytestmark = pytest.mark.torch


def test_what_shapes_are_computed_of_is_folded(tmp_path: Path) -> None:
    """Shape, Gather, Concat and Reshape, as exporters write a view."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", ["batch", 3, 4]), ("y", ["batch", 12])))
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Constant", [], ["zero"], value_ints=[0]),
        helper.make_node("Gather", ["shape", "zero"], ["first"]),
        helper.make_node("Constant", [], ["rest"], value_ints=[-1]), helper.make_node("Concat", ["first", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["y"]),
    ]  # fmt: skip
    graph = helper.make_graph(nodes, "view", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(tmp_path / "m.onnx"))
    module, inputs = read_onnx(tmp_path / "m.onnx")
    assert isinstance(inputs, tuple) and module(*inputs).shape == (1, 12)


def test_a_compiled_file(tmp_path: Path) -> None:
    saved(tmp_path / "m.onnx", "Relu", [X])
    network = ansor.compile(tmp_path / "m.onnx", library=False)
    np.testing.assert_array_equal(network(X), np.maximum(X, 0))
    np.testing.assert_array_equal(network(x0=X), np.maximum(X, 0))


def test_open_shapes_need_inputs(tmp_path: Path) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", ["batch", "words"]), ("y", ["batch", "words"])))
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "open", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(tmp_path / "m.onnx"))
    with pytest.raises(ModelError, match="of which the file leaves some extents open; give example inputs"):
        read_onnx(tmp_path / "m.onnx")
    assert read_onnx(tmp_path / "m.onnx", torch.zeros(2, 3))[0](torch.ones(2, 3)).shape == (2, 3)


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    saved(path, "NonZero", [X])
    with pytest.raises(ModelError, match="NonZero y0 of the model has a shape that depends on values"):
        ansor.compile(path)
    saved(path, "Reshape", [X, integers(6, 20)])
    with pytest.raises(ModelError, match="reads x1, which has to be a constant: shapes of networks are fixed"):
        ansor.compile(path)
    saved(path, "AffineGrid", [X[:, :2, :3, 0]], [integers(2, 1, 4, 4)])
    with pytest.raises(ModelError, match="the model has AffineGrid, which is not supported in float networks"):
        ansor.compile(path)
    with pytest.raises(ModelError, match="which is not a file"):
        read_model(tmp_path / "none.onnx")
    path.write_bytes(b"no model")
    with pytest.raises(ModelError, match="which is no sound ONNX model"):
        read_model(path)


def test_quantised_files_have_another_door(tmp_path: Path) -> None:
    saved(tmp_path / "m.onnx", "QuantizeLinear", [X], [np.float32(0.1), np.int8(0)])
    assert not is_float(tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="use ansor.compile_int8"):
        ansor.compile(tmp_path / "m.onnx")


def test_older_files_are_converted(tmp_path: Path) -> None:
    saved(tmp_path / "m.onnx", "ReduceSum", [X], opset=11, axes=[1], keepdims=0)
    assert read_model(tmp_path / "m.onnx").opset == 13
    assert np.allclose(read_onnx(tmp_path / "m.onnx")[0](torch.from_numpy(X)).numpy(), X.sum(1), atol=1e-5)
