"""What nothing was chosen on stays apart from what the model learned from and what the project looks at."""

from __future__ import annotations

import numpy as np
import pristine
import pytest
import twelve_operators
from suite import ROWS

from ansor.dataset.known import is_learned
from ansor.dataset.operators import KINDS
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.ir.normal.form import normal_form
from ansor.te.tensor import Tensor

pytestmark = pytest.mark.torch


def _key(tensors: list[Tensor]) -> str:
    return Dag(normal_form(tensors)).key


def test_no_family_is_known() -> None:
    others = {*KINDS, *twelve_operators.OPERATORS, *(row.operator.func.__name__ for row in ROWS)}
    assert not others & set(pristine.OPERATORS)


def test_no_operator_is_known() -> None:
    seen = {_key(declare()) for declare in twelve_operators.OPERATORS.values()} | {_key(row.operator().declare()) for row in ROWS if row.group != "ansor"}
    for name, declare in pristine.OPERATORS.items():
        assert not is_learned(declare()) and _key(declare()) not in seen, name


def test_what_they_compute() -> None:
    """Some of them, small, beside NumPy."""
    rng = np.random.default_rng(0)

    def made(tensors: list[Tensor]) -> tuple[dict[str, np.ndarray], np.ndarray]:
        drawn = {one: rng.integers(-9, 9, one.shape) if one.dtype == "int16" else rng.random(one.shape) for one in Dag(tensors).inputs}
        inputs = {one.name: values.astype(one.dtype) for one, values in drawn.items()}
        return inputs, np.asarray(evaluate(Dag(tensors).outputs, inputs)[0])

    given, found = made(pristine.contraction(3))
    assert np.allclose(found, np.einsum("iejf,mfke->ijkm", given["a"], given["b"]), rtol=1e-5)
    given, found = made(pristine.mttkrp(3, 4, 5, 2))
    assert np.allclose(found, np.einsum("xpq,pr,qr->xr", given["t"], given["b"], given["c"]), rtol=1e-5)
    given, found = made(pristine.complex_product(4))
    assert np.allclose(found, ((given["a"][0] + 1j * given["a"][1]) @ (given["b"][0] + 1j * given["b"][1])).real, atol=1e-5)
    given, found = made(pristine.group_norm(2, 3, 4))
    flat = given["x"].reshape(2, -1).astype(np.float64)
    assert np.allclose(found.reshape(2, -1), (flat - flat.mean(1, keepdims=True)) / np.sqrt(flat.var(1, keepdims=True) + 1e-5), atol=1e-4)
    given, found = made(pristine.block_matching(2, 4, 3))
    assert found[1, 0, 2, 1] == np.abs(given["a"][4:, :4].astype(int) - given["b"][6:10, 1:5].astype(int)).sum()
