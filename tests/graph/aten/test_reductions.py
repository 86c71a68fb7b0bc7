"""Reductions other than sums and means, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from ansor.graph.aten.reductions import LONGEST_SCAN
from ansor.graph.tasks import ExtractedGraph

pytestmark = pytest.mark.torch
Agrees = Callable[..., ExtractedGraph]

REDUCTIONS: dict[str, Callable[[torch.Tensor], object]] = {
    "truth": lambda x: (x.any(), x.all(), (x > 0).any(1), (x > -3).all(2, keepdim=True)),
    "places": lambda x: (x.argmax(), x.argmin(1), x.argmax(-1, keepdim=True), x.round().argmax(0)),
    "extremes": lambda x: (x.max(1), x.min(-1, keepdim=True), x.aminmax(dim=0)), "products": lambda x: (x.prod(), x.prod(1)),
    "moments": lambda x: (x.var(), x.std(1), x.var((0, 2), correction=0, keepdim=True), torch.var_mean(x, 1), torch.std_mean(x, -1)),
    "running": lambda x: (x.cumsum(1), x.cumprod(-1), (x > 0).cumsum(0)), "logsumexp": lambda x: x.logsumexp(1), "counts": lambda x: (x > 0).count_nonzero(1),
    "norms": lambda x: (x.norm(), torch.linalg.vector_norm(x, 3, 1), torch.linalg.vector_norm(x, float("inf"))),
    "distances": lambda x: (torch.cdist(x, x, p=1), torch.cdist(x, x + 1), torch.cdist(x, x, p=3)), "no dimensions": lambda x: x[0, 0, 0].sum().max(),
}  # fmt: skip


def test_reductions(agrees: Agrees) -> None:
    assert not agrees(lambda x: {name: function(x) for name, function in REDUCTIONS.items()}, torch.randn(2, 4, 5)).torch_calls


def test_places_of_nan(agrees: Agrees) -> None:
    assert not agrees(lambda x: x.argmax(1), torch.tensor([[1.0, float("nan"), 5.0], [3.0, 3.0, 1.0]])).torch_calls


def test_long_running_sums_stay_in_pytorch(agrees: Agrees) -> None:
    extracted = agrees(lambda x: x.cumsum(0), torch.randn(LONGEST_SCAN + 1))
    assert dict(extracted.torch_calls) == {"aten.cumsum.default": "a kernel would take 513^2 / 2 steps for it"}
