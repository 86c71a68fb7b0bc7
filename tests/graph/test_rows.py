from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as f

from ansor.graph.rows import Rows, rows_of
from ansor.graph.tasks import ExtractedGraph, extract

pytestmark = pytest.mark.torch
Function = Callable[..., torch.Tensor]


class Kept(nn.Module):
    """Adds a constant of the batch's size, which PyTorch does not fold further."""

    def __init__(self, kept: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("kept", kept)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.kept  # type: ignore[operator]


def found(model: object, *inputs: torch.Tensor) -> tuple[ExtractedGraph, Rows]:
    extracted = extract(model, inputs, lambda line: None)
    rows = rows_of(extracted.graph)
    assert rows is not None
    return extracted, rows


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.softmax(1), lambda x: x.sum(2), lambda x: x.amax((1, 2)), lambda x: x.cumsum(1), lambda x: x.argmax(1), lambda x: x.flip(1),
        lambda x: x.transpose(1, 2) @ x, lambda x: x.reshape(12, 8) + 1, lambda x: x.flatten(1), lambda x: f.layer_norm(x, (8,)), lambda x: x[:, 1],
        lambda x: torch.cat([x, x * 2], 2), lambda x: f.pad(x, (1, 2)), lambda x: x * torch.arange(8.0), lambda x: x.gather(1, x.argmax(1, keepdim=True)),
        lambda x: x[:, torch.tensor([2, 0])], lambda x: torch.cat([x, torch.ones(1, 1, 8).expand(4, 1, 8)], 1), lambda x: f.avg_pool1d(x, 2),
    ],
)  # fmt: skip
def test_operators_on_rows(function: Function) -> None:
    extracted, rows = found(function, torch.randn(4, 3, 8))
    assert rows.count == 4 and not rows.mixed and set(extracted.graph.outputs) <= rows.inside


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.softmax(0), lambda x: x.sum(0), lambda x: x.mean(), lambda x: x.cumsum(0), lambda x: x.argmax(0), lambda x: x.flip(0), lambda x: x[1:],
        lambda x: x.transpose(0, 1), lambda x: torch.cat([x, x]), lambda x: f.pad(x, (0, 0, 0, 0, 1, 0)), lambda x: x + torch.arange(4.0)[:, None, None],
        lambda x: x[torch.tensor([1, 0, 3, 2])], lambda x: x.reshape(3, 4, 8) + x.reshape(3, 4, 8).sum(1, keepdim=True), lambda x: f.layer_norm(x, (4, 3, 8)),
        lambda x: x.flatten() @ torch.ones(96), lambda x: x.gather(0, torch.zeros(4, 3, 8, dtype=torch.int64)), lambda x: x.reshape(4, 24) @ x.reshape(24, 4),
        lambda x: torch.einsum("ijk,ljk->il", x, x), lambda x: x.roll(1, 0), lambda x: torch.linalg.det(x[:, :, :3]),
    ],
)  # fmt: skip
def test_operators_that_mix_rows(function: Function) -> None:
    extracted, rows = found(function, torch.randn(4, 3, 8))
    assert not set(extracted.graph.outputs) & rows.inside


def test_what_no_row_changes_is_shared() -> None:
    extracted, rows = found(lambda x, y: (x + 1, y.exp() * 2), torch.randn(4, 3), torch.randn(1, 3))
    first, second = extracted.graph.outputs
    assert first in rows.inside and second not in rows.inside | rows.mixed


def test_constants_that_repeat_themselves_may_be_read_in_rows() -> None:
    extracted, rows = found(Kept(torch.arange(3.0).expand(4, 3).clone()), torch.randn(4, 3))
    assert rows.repeated and set(extracted.graph.outputs) <= rows.inside
    extracted, rows = found(Kept(torch.tensor([[0.0], [0.0], [-0.0], [0.0]])), torch.randn(4, 1))
    assert not rows.repeated  # copysign tells zeros apart
    extracted, rows = found(Kept(torch.randn(4, 3)), torch.randn(4, 3))
    assert not rows.repeated and set(extracted.graph.outputs) <= rows.mixed


def test_weights_with_as_many_rows_as_the_batch_are_shared() -> None:
    model = nn.Linear(3, 4)
    with torch.no_grad():
        model.weight[:] = 1.0
    extracted, rows = found(model, torch.randn(4, 3))
    assert not rows.repeated and set(extracted.graph.outputs) <= rows.inside


@pytest.mark.parametrize("given", [torch.randn(1, 3), torch.tensor(2.0), torch.randn(0, 3)])
def test_networks_without_several_rows(given: torch.Tensor) -> None:
    assert rows_of(extract(lambda x: x + 1, given).graph) is None
