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


class Follows(nn.Module):
    """A product, times an array, plus one."""

    def __init__(self, other: torch.Tensor) -> None:
        super().__init__()
        self.conv, self.other = nn.Conv2d(3, 4, 1), nn.Parameter(other)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total: torch.Tensor = self.conv(x) * self.other + 1.0
        return total


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1), (4, 1, 1), (1, 4, 1, 1), (1, 4, 6, 6), (1, 1, 6, 6)])
def test_what_follows_a_product_joins_its_kernel(agrees: Agrees, shape: tuple[int, ...]) -> None:
    assert "dense_36x3x4_bias_mul_add" in names(agrees(Follows(torch.randn(*shape) if shape else torch.tensor(2.0)), torch.randn(1, 3, 6, 6)))


@pytest.mark.parametrize("shape", [(2, 4, 1, 1), (4, 6, 6), (1, 6, 6), (6, 1)])
def test_operands_without_a_form_for_rows_keep_the_convolution_and_its_kernel(agrees: Agrees, shape: tuple[int, ...]) -> None:
    assert "conv2d_1x1_3_4_6x6_bias_mul_add" in names(agrees(Follows(torch.randn(*shape)), torch.randn(2, 3, 6, 6)))


class Cross(nn.Module):
    """A bottleneck of a cross-stage partial network: the result of the product is read twice."""

    def __init__(self) -> None:
        super().__init__()
        self.narrow, self.wide = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.narrow(x))
        total: torch.Tensor = y + torch.relu(self.wide(y))
        return total


class Shortcut(Cross):
    """A product beside a larger convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total: torch.Tensor = torch.relu(self.wide(x)) + self.narrow(x)
        return total


@pytest.mark.parametrize(("module", "kernels"), [
    (Cross(), {"dense_36x3x4_bias_relu", "conv2d_3x3_4_4_6x6_bias_relu_add"}),
    (Shortcut(), {"dense_36x3x4_bias", "conv2d_3x3_3_4_6x6_bias_relu_add"}),
])  # fmt: skip
def test_sums_stay_in_the_kernels_of_convolutions(agrees: Agrees, module: nn.Module, kernels: set[str]) -> None:
    found = names(agrees(module, torch.randn(1, 3, 6, 6)))
    assert kernels <= set(found) and sum(not name.startswith("transpose") for name in found) == 2


def test_layers_with_as_many_places_share_a_kernel(agrees: Agrees) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 1)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.first(x), self.second(y)

    extracted = agrees(Two(), torch.randn(1, 3, 4, 4), torch.randn(1, 3, 2, 8))
    assert [task.weight for task in extracted.tasks if task.name == "dense_16x3x4_bias"] == [2]


def test_results_that_are_returned_and_read_on(agrees: Agrees) -> None:
    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 4, 1), nn.Conv2d(4, 5, 1)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = torch.relu(self.first(x))
            return y, self.second(y)

    assert {"dense_36x3x4_bias_relu", "dense_36x4x5_bias"} <= set(names(agrees(Chain(), torch.randn(1, 3, 6, 6))))


def test_chains_of_products_stay_matrices(agrees: Agrees) -> None:
    graph = agrees(nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.Conv2d(4, 5, 1), nn.ReLU(), nn.Conv2d(5, 6, 1)), torch.randn(1, 3, 6, 6)).graph
    made = {node.name: node for node in graph}
    second, third = [node for node in graph if node.op == "dense"][1:]
    assert made[second.inputs[0]].op == made[third.inputs[0]].op == "relu"


def test_bfloat16(agrees: Agrees) -> None:
    found = names(agrees(Follows(torch.randn(4, 1, 1)).bfloat16(), torch.randn(1, 3, 6, 6).bfloat16(), tolerance=0.02))
    assert any(name.startswith("dense") for name in found), found
