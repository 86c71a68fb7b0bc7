from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from ansor.graph.tasks import ExtractedGraph

pytestmark = pytest.mark.torch


def test_elementwise_work_meets_the_dense_layer_before_it(agrees: Callable[..., ExtractedGraph]) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line, self.scale = nn.Linear(4, 4), nn.Parameter(torch.randn(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.line(x) * self.scale + x)

    extracted = agrees(Block(), torch.randn(2, 3, 4))
    assert [task.name for task in extracted.tasks] == ["dense_6x4x4_bias_mul_add_relu"]


def test_operands_that_have_no_such_form_keep_the_reshape(agrees: Callable[..., ExtractedGraph]) -> None:
    agrees(lambda x: x.reshape(2, 3, 4) + torch.arange(3.0)[:, None], torch.randn(6, 4))
    agrees(lambda x: x.exp().reshape(()) + torch.ones(1), torch.randn(1, 1))
    agrees(lambda x: (x.exp().reshape(2, 12) + 1, x.exp().reshape(24) * 2 + x.reshape(24)), torch.randn(6, 4))
