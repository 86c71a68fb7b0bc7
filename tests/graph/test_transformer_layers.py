"""Fused layers of transformers equal PyTorch's, and run in kernels."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ansor.graph.tasks import extract
from ansor.graph.transformer_layers import encoder_layer
from tests.graph.conftest import assembled

pytestmark = pytest.mark.torch

HEADS, WIDTH, TOKENS = 2, 8, 5
FUSED = torch.ops.aten._transformer_encoder_layer_fwd.default


def arguments(gelu: bool, norm_first: bool) -> list[object]:
    """Those of a layer, without masks."""
    inner = 12
    shapes = [(3 * WIDTH, WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), *[(WIDTH,)] * 5, (inner, WIDTH), (inner,), (WIDTH, inner), (WIDTH,)]
    weights = [torch.randn(shape) for shape in shapes]
    return [torch.randn(3, TOKENS, WIDTH), WIDTH, HEADS, *weights[:4], gelu, norm_first, 1e-5, *weights[4:]]


def masks() -> list[tuple[torch.Tensor | None, int | None]]:
    """A mask of each type; no row hides all."""
    keys = torch.rand(3, TOKENS) > 0.5
    keys[:, 0] = False
    pairs = torch.ones(TOKENS, TOKENS).triu(1).bool()
    return [(None, None), (pairs, 0), (keys, 1), ((pairs | keys[:, None])[:, None].expand(-1, HEADS, -1, -1).contiguous(), 2)]


@pytest.mark.parametrize("gelu", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_layers_equal_pytorchs(gelu: bool, norm_first: bool) -> None:
    given = arguments(gelu, norm_first)
    for mask, kind in masks():
        with torch.no_grad():
            assert_close(encoder_layer(*given, mask, kind), FUSED(*given, mask, kind), rtol=1e-4, atol=1e-5)


class Fused(nn.Module):
    """The layer as modules call it."""

    def __init__(self) -> None:
        super().__init__()
        self.given = arguments(True, False)[1:]

    def forward(self, src: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = FUSED(src, *self.given)
        return found


def test_they_run_in_kernels() -> None:
    model, x = Fused(), torch.randn(3, TOKENS, WIDTH)
    extracted = extract(model, (x,))
    assert not extracted.torch_calls
    with torch.no_grad():
        assert_close(assembled(extracted)(x), model(x), rtol=1e-4, atol=1e-5)
