"""What becomes of an operator test, by tests that are made up and by those of the package onnx."""

from __future__ import annotations

import numpy as np
import onnx_operators
import pytest
from onnx import TensorProto, helper

pytestmark = pytest.mark.torch
X = np.array([[1.0, -2.0, 3.0]], dtype=np.float32)


def _case(op: str, inputs: list[np.ndarray], output: np.ndarray) -> onnx_operators.Case:
    names = [f"x{place}" for place in range(len(inputs))]
    values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape) for name, one in zip(names, inputs, strict=True)]
    kind = TensorProto.INT64 if op == "NonZero" else TensorProto.FLOAT
    graph = helper.make_graph([helper.make_node(op, names, ["y"])], "one", values, [helper.make_tensor_value_info("y", kind, output.shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx_operators.Case(f"test_{op.lower()}", model, inputs, [output])


@pytest.mark.filterwarnings("ignore::ansor.errors.AnsorWarning")
@pytest.mark.parametrize(
    ("case", "outcome"),
    [
        (_case("Relu", [X], np.maximum(X, 0)), "own"),
        (_case("Relu", [X], X), "wrong"),
        (_case("Reshape", [X, np.array([3, 1])], X.reshape(3, 1)), "own"),
        (_case("Det", [X.T @ X], np.array(0, np.float32)), "torch"),
        (_case("NonZero", [X], X), "refused"),
    ],
)
def test_outcomes(case: onnx_operators.Case, outcome: str) -> None:
    found = onnx_operators.judged(case, build=False)
    assert found.outcome == outcome, found


def test_table() -> None:
    lines = onnx_operators.table([onnx_operators.Outcome("a", "Relu", "own"), onnx_operators.Outcome("b", "Relu", "refused")])
    assert [line.split() for line in lines[1:]] == [["Relu", "1", "0", "1", "0", "0", "0"], ["all", "1", "0", "1", "0", "0", "0"]]


@pytest.mark.filterwarnings("ignore")
def test_no_node_test_of_onnx_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """Each is refused in a sentence, or gives the outputs that are in the package onnx."""
    assert onnx_operators.main([]) == 0
    total = capsys.readouterr().out.splitlines()[-1].split()
    assert total[0] == "all" and int(total[1]) >= 650 and total[4:6] == ["0", "0"]
