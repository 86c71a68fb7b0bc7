"""Each kind of operator is the same for us, for PyTorch and for ONNX."""

from __future__ import annotations

import pytest
import rivals
import torch
from kinds import Operator
from operators import TOLERANCE

from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from tests.benchmarks.tiny import TINY

pytestmark = pytest.mark.torch


def _largest_difference(found: torch.Tensor, operator: Operator) -> float:
    exact = operator.reference().double()
    assert found.shape == exact.shape
    return float((found.double() - exact).abs().max())


@pytest.mark.parametrize("kind", TINY)
def test_declaration_is_what_pytorch_computes(kind: str) -> None:
    operator = TINY[kind][0]()
    given = {name: value.numpy() for name, value in {**operator.inputs, **operator.our_constants}.items()}
    tensors = operator.declare()
    (found,) = evaluate(tensors[-1:], given)
    assert [tensor.name for tensor in tensors[:-1]] == [*operator.inputs, *operator.our_constants]
    assert [tensor.constant for tensor in tensors[:-1]] == [False] * len(operator.inputs) + [True] * len(operator.our_constants)
    assert _largest_difference(torch.from_numpy(found), operator) < 1e-5


@pytest.mark.parametrize("kind", [kind for kind, (_, flop) in TINY.items() if flop])
def test_operations_are_those_counted_by_hand(kind: str) -> None:
    operator, flop = TINY[kind]
    assert Dag(operator().declare()).flop == flop


@pytest.mark.parametrize("kind", TINY)
def test_eager_gives_the_reference(kind: str) -> None:
    operator = TINY[kind][0]()
    assert _largest_difference(rivals.eager(operator, 1).result(), operator) < 1e-5


@pytest.mark.parametrize("kind", TINY)
def test_onnx_gives_the_reference(kind: str) -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    operator = TINY[kind][0]()
    assert _largest_difference(rivals.onnxruntime(operator, 1).result(), operator) < TOLERANCE


def test_a_rival_that_raises_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(operator: Operator, threads: int) -> rivals.Ready:
        raise NotImplementedError("no such operator")

    monkeypatch.setattr(rivals, "RIVALS", {"broken": broken})
    assert rivals.ready("broken", TINY["matmul"][0](), 1) == rivals.Failed("NotImplementedError: no such operator")
