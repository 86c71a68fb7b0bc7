"""Constants that an ONNX file computes, folded when it is read."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from ansor.errors import ModelError
from ansor.integer.onnx_constants import FOLDED, MOST, folded
from ansor.integer.onnx_file import Array, OnnxNode

A, B = np.arange(6, dtype=np.int64).reshape(2, 3), np.full((2, 3), 2, np.int64)
CASES: Mapping[str, tuple[tuple[Array, ...], Mapping[str, object], Array]] = {
    "ConstantOfShape": ((np.array([2, 2]),), {"value": np.array([7], np.int32)}, np.full((2, 2), 7, np.int32)),
    "Concat": ((A, B), {"axis": 1}, np.concatenate([A, B], 1)),
    "Slice": ((A, np.array([1]), np.array([3]), np.array([1])), {}, A[:, 1:3]),
    "Cast": ((A,), {"to": 1}, A.astype(np.float32)),
    "Transpose": ((A,), {"perm": [1, 0]}, A.T),
    "Reshape": ((A, np.array([3, 2])), {}, A.reshape(3, 2)),
    "Gather": ((A, np.array([1])), {"axis": 0}, A[[1]]),
    "Unsqueeze": ((A, np.array([0])), {}, A[None]),
    "Squeeze": ((A[None], np.array([0])), {}, A),
    "Add": ((A, B), {}, A + B),
    "Sub": ((A, B), {}, A - B),
    "Mul": ((A, B), {}, A * B),
    "Div": ((A, B), {}, A // B),
    "Identity": ((A,), {}, A),
}


def test_every_operator_has_a_case() -> None:
    assert set(CASES) == set(FOLDED)


@pytest.mark.parametrize("op", CASES)
def test_the_value_of_a_node(op: str) -> None:
    inputs, attributes, wanted = CASES[op]
    found = folded(OnnxNode(op, tuple(f"i{place}" for place in range(len(inputs))), ("o",), attributes), inputs)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape and np.array_equal(found, wanted)


@pytest.mark.parametrize(("op", "inputs"), [("ConstantOfShape", (np.array([MOST, 2]),)), ("Identity", (np.broadcast_to(np.int8(0), (MOST + 1,)),))])
def test_what_no_board_can_hold_is_refused(op: str, inputs: tuple[Array, ...]) -> None:
    with pytest.raises(ModelError, match="makes a constant of more than"):
        folded(OnnxNode(op, ("i",), ("o",), {}), inputs)
