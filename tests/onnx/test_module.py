"""Files as modules: what is folded, how they are called, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

import ansor
from ansor.errors import ModelError
from ansor.onnx.folding import folded
from ansor.onnx.model_file import Node, is_float, read_model
from ansor.onnx.module import read_onnx
from tests.onnx.single import X, integers, saved

pytestmark = pytest.mark.torch


def test_shape_computations_are_folded(tmp_path: Path) -> None:
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


def _difference(path: Path, names: tuple[str, str], shape: tuple[int, ...] = (2,)) -> None:
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names]
    graph = helper.make_graph([helper.make_node("Sub", names, ["z"])], "g", inputs, [helper.make_tensor_value_info("z", TensorProto.FLOAT, shape)])
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())


@pytest.mark.parametrize("names", [("x", "y"), ("x.1", "y.1"), ("class", "y"), ("self", "y")])
def test_example_inputs_by_name_come_in_any_order(names: tuple[str, str], tmp_path: Path) -> None:
    _difference(tmp_path / "m.onnx", names)
    x, y = np.array([5, 6], np.float32), np.array([1, 1], np.float32)
    network = ansor.compile(tmp_path / "m.onnx", {names[1]: torch.from_numpy(y), names[0]: torch.from_numpy(x)}, library=False)
    np.testing.assert_array_equal(network(x, y), x - y)
    module, _ = read_onnx(tmp_path / "m.onnx")
    if names[0] != "self":  # "self" is the module itself
        np.testing.assert_array_equal(module(**{names[1]: torch.from_numpy(y), names[0]: torch.from_numpy(x)}).numpy(), x - y)
    with pytest.raises(ModelError, match=f"are named a, but the model's are {names[0]}, y"):
        read_onnx(tmp_path / "m.onnx", {"a": torch.from_numpy(x)})


def test_inputs_that_no_tensor_can_have(tmp_path: Path) -> None:
    for shape in ((-3,), (1 << 50,)):
        _difference(tmp_path / "m.onnx", ("x", "y"), shape)
        with pytest.raises(ModelError, match="which no tensor can have"):
            read_onnx(tmp_path / "m.onnx")
    x = helper.make_tensor_value_info("x", TensorProto.BFLOAT16, (2,))
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [x], [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, (2,))])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(tmp_path / "m.onnx"))
    with pytest.raises(ModelError, match="the input x is bfloat16"):
        read_onnx(tmp_path / "m.onnx")


def test_sparse_constants_and_future_versions_are_refused(tmp_path: Path) -> None:
    values = numpy_helper.from_array(np.ones(1, np.float32), "y")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(integers(1), "places"), [2])
    graph = helper.make_graph([helper.make_node("Neg", ["y"], ["z"])], "g", [], [helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])],
                              sparse_initializer=[sparse])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(tmp_path / "m.onnx"))
    with pytest.raises(ModelError, match="the constant y of the model is sparse"):
        read_model(tmp_path / "m.onnx")
    saved(tmp_path / "m.onnx", "Relu", [X], opset=999)
    with pytest.raises(ModelError, match="is of version 999 of ONNX's operators, and the installed onnx supports versions up to"):
        read_model(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("op", "operands"), [("Range", (0, 1 << 40, 1)), ("Expand", (1, [1 << 40])), ("Tile", ([1], [1 << 40])), ("ConstantOfShape", ([1 << 40],))]
)
def test_constants_that_would_fill_the_memory_are_refused(op: str, operands: tuple[object, ...]) -> None:
    with pytest.raises(ModelError, match=f"the {op} y makes a constant of more than"):
        folded(Node(op, ("a",) * len(operands), ("y",), {}), [np.array(one) for one in operands], 17)


def test_open_shapes_need_inputs(tmp_path: Path) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", ["batch", "words"]), ("y", ["batch", "words"])))
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "open", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(tmp_path / "m.onnx"))
    with pytest.raises(ModelError, match="with open extents; give example inputs"):
        read_onnx(tmp_path / "m.onnx")
    assert read_onnx(tmp_path / "m.onnx", torch.zeros(2, 3))[0](torch.ones(2, 3)).shape == (2, 3)


@pytest.mark.parametrize("in_node", [False, True])
def test_missing_weights_are_named(tmp_path: Path, in_node: bool) -> None:
    """Of an initializer, and of a `Constant`."""
    path, weights = tmp_path / "m.onnx", numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in ("x", "y"))
    nodes = [*([helper.make_node("Constant", [], ["w"], value=weights)] if in_node else []), helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [] if in_node else [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path), save_as_external_data=True, location="w.bin", size_threshold=0, convert_attribute=True)
    assert read_model(path).opset == 17
    (tmp_path / "w.bin").unlink()
    with pytest.raises(ModelError, match="whose weights are in .*w.bin, which is missing; put that file beside it"):
        read_model(path)


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
    with pytest.raises(ModelError, match="which is not a valid ONNX model.*; export it again"):
        read_model(path)
    (tmp_path / "net.py").write_text("class Net: ...")
    with pytest.raises(ModelError, match="net.py as an ONNX model; files are .onnx here: give a module, or use the command `ansor compile .*net.py`"):
        ansor.compile(str(tmp_path / "net.py"))
    (tmp_path / "net.bin").write_bytes(b"no model")
    with pytest.raises(ModelError, match="files are .onnx here, and Python files are for the command `ansor compile`"):
        read_model(tmp_path / "net.bin")


def test_quantised_files_need_another_function(tmp_path: Path) -> None:
    saved(tmp_path / "m.onnx", "QuantizeLinear", [X], [np.float32(0.1), np.int8(0)])
    assert not is_float(tmp_path / "m.onnx")
    with pytest.raises(ModelError, match="use ansor.compile_int8"):
        ansor.compile(tmp_path / "m.onnx")


def test_older_files_are_converted(tmp_path: Path) -> None:
    saved(tmp_path / "m.onnx", "ReduceSum", [X], opset=11, axes=[1], keepdims=0)
    assert read_model(tmp_path / "m.onnx").opset == 13
    assert np.allclose(read_onnx(tmp_path / "m.onnx")[0](torch.from_numpy(X)).numpy(), X.sum(1), atol=1e-5)
