"""Networks of bfloat16 in our kernels: as close to the float32 network as PyTorch's own bfloat16 is."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
import transformers
from torch import nn

import ansor
from ansor.errors import AnsorWarning
from ansor.graph.library import library_kernels
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import ExtractedGraph, extract

BF, ONE = torch.bfloat16, "cpu -threads=1"
Reference = Callable[[ExtractedGraph], CompiledNetwork]


def away(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest difference over the largest element."""
    return float((found.double() - wanted.double()).abs().max() / wanted.double().abs().max())


def bert() -> torch.nn.Module:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 50}
    model: torch.nn.Module = transformers.BertModel(transformers.BertConfig(**sizes))
    return model.eval()


@pytest.mark.compiler
@pytest.mark.torch
@pytest.mark.parametrize("target", [ONE, "cpu -threads=1 -mattr=-avx512bf16"])
def test_bert_runs_in_our_kernels(target: str) -> None:
    """docs/bfloat16.md states these errors."""
    torch.manual_seed(0)
    model, ids = bert(), torch.randint(0, 50, (2, 12))
    with torch.no_grad():
        wanted = model(ids).last_hidden_state
        model = model.to(BF)
        theirs = model(ids).last_hidden_state
    with warnings.catch_warnings():
        warnings.simplefilter("error", AnsorWarning)
        network = ansor.compile(model, (ids,), target, library=False, progress=False)
    assert not any(name.startswith("torch ") for name, _ in network.steps)
    found = network(ids).last_hidden_state  # type: ignore[attr-defined]
    assert found.dtype == BF
    assert away(found, wanted) <= 1.5 * away(theirs, wanted) and away(found, theirs) < 0.03


def test_every_node_rounds_once_and_computes_in_float32(reference: Reference) -> None:
    """So results are those of PyTorch wherever it rounds as often."""
    def model(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (x * 1.7 + y, torch.relu(x - y) / 3, nn.functional.gelu(x), torch.cat([x, y], 1)[:, 2:], x.mean(1), x.amax(0), x.T @ y, x > 0.1,
                nn.functional.pad(x, (1, 2)), x.to(torch.float32) * 2, (x.float() / 7).to(BF))  # fmt: skip

    torch.manual_seed(0)
    x, y = torch.randn(6, 5).to(BF), torch.randn(6, 5).to(BF)
    extracted = extract(model, (x, y), report=lambda line: None)
    assert not extracted.torch_calls
    for one, other in zip(reference(extracted)(x, y), model(x, y), strict=True):  # type: ignore[call-overload]
        assert one.dtype == other.dtype and one.shape == other.shape
        if one.dtype == torch.bool:
            assert torch.equal(one, other)
        else:
            torch.testing.assert_close(one, other, rtol=2**-7, atol=2**-8)


def test_scores_of_attention_stay_in_float32() -> None:
    """PyTorch's fused attention does not round them either; as a group of its own, that is nothing PyTorch has a call for."""
    def model(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v)

    given = tuple(torch.randn(1, 2, 8, 16).to(BF) for _ in range(3))
    extracted = extract(model, given, report=lambda line: None)
    dtypes = {node.op: node.dtype for node in extracted.graph}
    assert (dtypes["softmax"], [node.dtype for node in extracted.graph if node.op == "batch_matmul"]) == ("float32", ["float32", "bfloat16"])
    missing = [task.name for task, kernel in zip(extracted.tasks, library_kernels(extracted), strict=True) if kernel is None]
    assert len(missing) == 1 and missing[0].startswith("batch_matmul")


@pytest.mark.compiler
def test_a_saved_network_needs_no_pytorch(tmp_path: object) -> None:
    import ml_dtypes
    import numpy as np

    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)).eval().to(BF), torch.randn(4, 16).to(BF)
    network = ansor.compile(model, (x,), ONE, library=False, progress=False)
    loaded = ansor.load(network.save(tmp_path))  # type: ignore[arg-type]
    given = x.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    found = loaded(given)
    assert isinstance(found, np.ndarray) and found.dtype == ml_dtypes.bfloat16
    assert np.array_equal(found.view(np.int16), network(x).view(torch.int16).numpy())  # type: ignore[attr-defined]


def test_the_next_number_stays_in_pytorch() -> None:
    extracted = extract(torch.nextafter, (torch.ones(3).to(BF), torch.zeros(3).to(BF)), report=lambda line: None)
    assert "kernels compute the next float32 number" in extracted.torch_calls["aten.nextafter.default"]
