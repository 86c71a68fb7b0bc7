"""Convolutions by a single point become matrix products."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from ansor.graph.tasks import ExtractedGraph

pytestmark = pytest.mark.torch

Agrees = Callable[..., ExtractedGraph]


def names(extracted: ExtractedGraph) -> list[str]:
    return sorted(task.name for task in extracted.tasks)


@pytest.mark.parametrize(("module", "shape", "name"), [
    (nn.Conv2d(6, 8, 1), (2, 6, 5, 3), "dense_30x6x8_bias"),
    (nn.Conv2d(6, 8, 1, bias=False), (1, 6, 4, 4), "dense_16x6x8"),
    (nn.Conv1d(6, 8, 1), (2, 6, 7), "dense_14x6x8_bias"),
    (nn.Conv3d(6, 8, 1), (1, 6, 2, 3, 4), "dense_24x6x8_bias"),
    (nn.Conv2d(6, 8, 1, dilation=3), (1, 6, 4, 4), "dense_16x6x8_bias"),
])  # fmt: skip
def test_places_are_rows(agrees: Agrees, module: nn.Module, shape: tuple[int, ...], name: str) -> None:
    assert name in names(agrees(module, torch.randn(*shape)))


@pytest.mark.parametrize("module", [
    nn.Conv2d(6, 8, 1, stride=2),
    nn.Conv2d(6, 8, 1, padding=1),
    nn.Conv2d(6, 8, 1, groups=2),
    nn.Conv2d(6, 8, (1, 3)),
])  # fmt: skip
def test_other_convolutions_stay(agrees: Agrees, module: nn.Module) -> None:
    assert any(name.startswith("conv2d") for name in names(agrees(module, torch.randn(1, 6, 4, 4))))


def test_weights_that_are_not_constant_stay(agrees: Agrees) -> None:
    assert any(name.startswith("conv2d") for name in names(agrees(nn.functional.conv2d, torch.randn(1, 6, 4, 4), torch.randn(8, 6, 1, 1))))


class Bottleneck(nn.Module):
    """Two products around a depthwise convolution, with squeeze and excitation and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.widen, self.middle, self.narrow = nn.Conv2d(4, 8, 1), nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 4, 1)
        self.squeeze, self.excite, self.norm = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1), nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.middle(nn.functional.silu(self.widen(x))))
        gate = torch.sigmoid(self.excite(torch.relu(self.squeeze(y.mean((2, 3), keepdim=True)))))
        return torch.relu(self.norm(self.narrow(y * gate)) + x)


@pytest.mark.parametrize("batch", [1, 3])
def test_activations_and_sums_stay_in_the_kernel(agrees: Agrees, batch: int) -> None:
    found = names(agrees(Bottleneck(), torch.randn(batch, 4, 6, 6)))
    assert {f"dense_{36 * batch}x4x8_bias_silu", f"dense_{36 * batch}x8x4_bias_add_relu", f"dense_{batch}x8x2_bias_relu"} <= set(found)
    assert len(found) == 9, found  # the depthwise convolution, the mean, the gate times the image, and a transposition at each end


@pytest.mark.parametrize("shape", [(1,), (1, 1, 1), (4, 1, 1), (1, 4, 1, 1), (1, 4, 6, 6), (1, 1, 6, 6)])
def test_what_follows_a_product_joins_its_kernel(agrees: Agrees, shape: tuple[int, ...]) -> None:
    other = torch.randn(*shape)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            total: torch.Tensor = self.conv(x) * other + 1.0
            return total

    assert [name for name in names(agrees(Block(), torch.randn(1, 3, 6, 6))) if name.startswith("dense")] == ["dense_36x3x4_bias_mul_add"]
