"""Quantised ONNX files as frameworks other than PyTorch write them, compiled to C and compared with onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import ansor
from ansor.measure.record import load

pytestmark = [pytest.mark.compiler, pytest.mark.torch]

ONE = "cpu -threads=1"


class File:
    """An ONNX file in the making. Each method adds a node, and returns the name of its result."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, value: NDArray[Any]) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(value, name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"n{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def stored(self, value: str, scale: float, zero: int, dtype: str = "int8") -> str:
        """Quantised, and read again."""
        given = (self.constant(np.array(scale, np.float32)), self.constant(np.array(zero, dtype)))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", value, *given), *given)

    def weights(self, *shape: int, axis: int, dtype: str = "int8") -> str:
        """Random ones with a scale for each output. uint8: around 128."""
        values = self.rng.integers(-127, 128, shape)
        scales = self.constant(self.rng.uniform(0.002, 0.004, shape[axis]).astype(np.float32))
        zeros = self.constant(np.full(shape[axis], 128 if dtype == "uint8" else 0, dtype))
        return self.node("DequantizeLinear", self.constant((values + (128 if dtype == "uint8" else 0)).astype(dtype)), scales, zeros, axis=axis)

    def float_weights(self, *shape: int) -> str:
        """Random ones that the file itself quantises."""
        given = (self.constant(np.array(0.003, np.float32)), self.constant(np.array(0, np.int8)))
        made = self.node("QuantizeLinear", self.constant(self.rng.uniform(-0.3, 0.3, shape).astype(np.float32)), *given)
        return self.node("DequantizeLinear", made, *given)

    def uniform(self, *shape: int, low: float = -0.5, high: float = 0.5) -> str:
        return self.constant(self.rng.uniform(low, high, shape).astype(np.float32))

    def saved(self, place: Path, result: str, given: list[int], made: list[int], dtype: int = TensorProto.FLOAT) -> Path:
        """The file: from the input x to that result, with their shapes."""
        inputs, outputs = helper.make_tensor_value_info("x", dtype, given), helper.make_tensor_value_info(result, TensorProto.FLOAT, made)
        graph = helper.make_graph(self._nodes, "net", [inputs], [outputs], self._constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), place)
        return place


def image_network(place: Path, dtype: str) -> Path:
    """Padding and batch norm as nodes of their own, a leaky rectifier, dense layers with their bias behind them, axes that come and go."""
    file = File(1)
    zero = 128 if dtype == "uint8" else 0
    x = file.stored("x", 0.03, zero, dtype)
    around = file.node("Pad", x, file.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1])), file.constant(np.array(0, np.float32)))
    made = file.stored(file.node("Conv", around, file.weights(8, 4, 3, 3, axis=0, dtype=dtype), file.uniform(8)), 0.03, zero, dtype)
    normed = file.node("BatchNormalization", made, file.uniform(8, low=0.5, high=1.5), file.uniform(8), file.uniform(8), file.uniform(8, low=0.5, high=1.5))
    made = file.stored(file.node("LeakyRelu", file.stored(normed, 0.04, zero, dtype), alpha=0.1), 0.03, zero - 40, dtype)
    made = file.stored(file.node("GlobalAveragePool", made), 0.01, zero, dtype)
    flat = file.node("Squeeze", made, file.constant(np.array([2, 3])))
    back = file.node("Squeeze", file.node("Unsqueeze", flat, file.constant(np.array([-1]))), file.constant(np.array([2])))
    dense = file.node("Add", file.node("MatMul", back, file.float_weights(8, 6)), file.uniform(6))
    made = file.stored(file.node("Relu", dense), 0.004, zero, dtype)
    last = file.node("Gemm", made, file.weights(3, 6, axis=0, dtype=dtype), transB=1)
    hard = file.node("HardSigmoid", file.stored(last, 0.01, zero, dtype), alpha=0.5, beta=0.4)
    return file.saved(place, file.stored(hard, 0.005, zero, dtype), [1, 4, 10, 9], [1, 3])


def integer_network(place: Path) -> Path:
    """An input that is int8 already, a shape that the file computes, and one that says -1."""
    file = File(2)
    x = file.node("DequantizeLinear", "x", file.constant(np.array(0.05, np.float32)), file.constant(np.array(3, np.int8)))
    rows = file.node("Concat", file.constant(np.array([2])), file.constant(np.array([-1])), axis=0)
    dense = file.node("MatMul", file.node("Reshape", x, rows), file.weights(12, 10, axis=1))
    made = file.stored(file.node("Clip", dense, file.constant(np.array(-1, np.float32)), file.constant(np.array(1, np.float32))), 0.02, 5)
    again = file.stored(file.node("Identity", made), 0.01, -7)
    return file.saved(place, again, [2, 3, 4], [2, 10], TensorProto.INT8)


def answers(file: Path, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Those of onnxruntime, which does not change the graph."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, 3
    session = onnxruntime.InferenceSession(file.read_bytes(), options)
    return [session.run(None, {"x": one})[0] for one in inputs]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_images(dtype: str, tmp_path: Path) -> None:
    file = image_network(tmp_path / "net.onnx", dtype)
    program = ansor.compile_int8(str(file), target=ONE)
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-3, 3, (1, 4, 10, 9)).astype(np.float32) for _ in range(12)]
    found = [program({"x": one}) for one in inputs]
    wanted = answers(file, inputs)
    assert len({tuple(one.ravel().tolist()) for one in wanted}) > 6
    for one, values, right in zip(inputs, found, wanted, strict=True):
        ((_, made),) = values.items()
        assert np.abs(made - right).max() <= 2 * 0.005 + 1e-6  # a step where single precision rounds the other way, and one by the scale of the sigmoid
        np.testing.assert_array_equal(made, next(iter(program.expected({"x": one}).values())))
    assert str(program).startswith(f"IntegerProgram({program.network.name} for cpu") and f"{program.arena_bytes} bytes of arena" in str(program)


def test_integers_in_and_shapes_that_are_computed(tmp_path: Path) -> None:
    file = integer_network(tmp_path / "net.onnx")
    program = ansor.compile_int8(str(file), target=ONE)
    values = np.random.default_rng(0).integers(-128, 128, (2, 3, 4)).astype(np.int8)
    ((_, made),) = program({"x": (values.astype(np.float64) - 3) * 0.05}).items()
    assert np.abs(made - answers(file, [values])[0]).max() <= 0.01 + 1e-6


def test_tasks_of_a_file_are_tuned_apart_and_used(tmp_path: Path) -> None:
    file = image_network(tmp_path / "net.onnx", "int8")
    found = ansor.extract_int8_tasks(str(file), target=ONE)
    assert len(found.tasks) == len(found.weights) >= 1 and all(weight >= 1 for weight in found.weights)
    records = str(tmp_path / "net.jsonl")
    ansor.tune_tasks(found, trials=4 * len(found.tasks), records=records)
    tuned = ansor.compile_int8(str(file), target=ONE, records=records)
    assert {one.workload for one in load(records).records} == {task.workload_key for task in found.tasks}
    plain = ansor.compile_int8(str(file), target=ONE)
    assert [sum(kernel.cost is not None for kernel in one.code.kernels) for one in (plain, tuned)] == [0, len(found.tasks)]
    x = {"x": np.random.default_rng(0).uniform(-3, 3, (1, 4, 10, 9)).astype(np.float32)}
    ((_, made),) = tuned(x).items()
    np.testing.assert_array_equal(made, next(iter(tuned.expected(x).values())))
