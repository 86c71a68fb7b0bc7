"""Calls without a translation are read through what PyTorch says that they are made of; wholly, or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as f

from ansor.graph.decomposition import decompositions
from ansor.graph.tasks import ExtractedGraph

pytestmark = pytest.mark.torch
Agrees = Callable[..., ExtractedGraph]

MADE_OF_OTHERS: dict[str, Callable[[torch.Tensor], object]] = {
    "logaddexp": lambda x: torch.logaddexp(x, x * 2), "similarity": lambda x: f.cosine_similarity(x, x + 1), "huber": lambda x: f.huber_loss(x, x * 3),
    "cross entropy": lambda x: f.cross_entropy(x, torch.tensor([0, 2, 4])), "resized": lambda x: f.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
    "triangle": lambda x: (x.tril(), x.triu(1)), "outer": lambda x: torch.outer(x[0], x[1]), "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "nan_to_num": lambda x: torch.nan_to_num(torch.log(x)), "selu": f.selu, "in place inside": lambda x: f.rms_norm(x, (5,)),
    "scaled product": lambda x: torch.addmm(x[:, :3], x, x.T, alpha=2, beta=0.5), "kron": lambda x: torch.kron(x, x[:2]),
}  # fmt: skip


def test_calls_are_taken_apart(agrees: Agrees) -> None:
    extracted = agrees(lambda x: {name: function(x) for name, function in MADE_OF_OTHERS.items()}, torch.randn(3, 5))
    assert not extracted.torch_calls


def test_a_call_of_which_one_part_has_no_translation_stays_whole(agrees: Agrees) -> None:
    extracted = agrees(lambda x: torch.quantile(x, 0.3), torch.randn(9))
    assert dict(extracted.torch_calls) == {"aten.quantile.scalar": "there is no translation into kernels"}
    assert [placed.task for placed in extracted.placed] == [None]


def test_what_is_random_is_not_taken_apart() -> None:
    from ansor.graph.from_torch import from_torch

    read = from_torch(lambda x: torch.bernoulli(x), torch.rand(4), lambda line: None)
    assert list(read.torch_calls) == ["aten.bernoulli.default"]


def test_results_without_elements_are_known(agrees: Agrees) -> None:
    assert not agrees(lambda x: (x[:0] * 2, x + 1), torch.randn(3, 4)).torch_calls


def test_lists_among_results(agrees: Agrees) -> None:
    """PyTorch makes this call; its second result is a list."""
    agrees(lambda x: torch.histogramdd(x, [2, 3]), torch.rand(6, 2))


def test_there_are_hundreds() -> None:
    assert len(decompositions()) > 500
