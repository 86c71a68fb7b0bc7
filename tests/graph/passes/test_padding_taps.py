from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from ansor.graph.ir import Node
from ansor.graph.passes.padding_taps import _Dimension
from ansor.graph.tasks import ExtractedGraph, extract

pytestmark = pytest.mark.torch

Agrees = Callable[..., ExtractedGraph]


def convolution(extracted: ExtractedGraph) -> tuple[Node, tuple[int, ...]]:
    """The only convolution of a graph, and the size of its kernel. One of a single tap is a product (`passes.pointwise`)."""
    (node,) = [node for node in extracted.graph if node.op.startswith("conv") or node.op == "dense"]
    shape = extracted.graph.constants[node.inputs[1]].shape
    if node.op == "dense":
        return node, (1, 1)
    return node, shape[:-2] if node.text("layout").endswith("C") else shape[2:]


@pytest.mark.parametrize(("dilation", "kernel"), [(6, (3, 3)), (13, (3, 3)), (14, (1, 1)), (24, (1, 1))])
def test_a_pyramid_of_a_small_image_reads_its_middle_only(agrees: Agrees, dilation: int, kernel: tuple[int, ...]) -> None:
    node, found = convolution(agrees(nn.Conv2d(3, 4, 3, padding=dilation, dilation=dilation), torch.randn(2, 3, 14, 14)))
    assert found == kernel and (node.op == "dense") == (kernel == (1, 1))


def test_dimensions_are_trimmed_apart(agrees: Agrees) -> None:
    node, kernel = convolution(agrees(nn.Conv2d(3, 4, 3, padding=8, dilation=8), torch.randn(1, 3, 20, 8)))
    assert kernel == (3, 1) and node.integers("padding") == (8, 0, 8, 0) and node.integers("dilation") == (8, 1)


@pytest.mark.parametrize(("module", "data"), [
    (nn.Conv1d(4, 4, 5, padding=12, dilation=6, groups=4), (1, 4, 6)),
    (nn.Conv3d(2, 3, 3, padding=(4, 1, 4), dilation=(4, 1, 4), bias=False), (1, 2, 4, 5, 3)),
    (nn.Conv2d(2, 3, 3, stride=2, padding=8, dilation=8), (1, 2, 7, 7)),
])  # fmt: skip
def test_kernels_of_any_rank_stride_and_groups(agrees: Agrees, module: nn.Module, data: tuple[int, ...]) -> None:
    _, kernel = convolution(agrees(module, torch.randn(*data)))
    assert np.prod(kernel) < np.prod(module.get_parameter("weight").shape[2:])


def test_what_reads_data_anywhere_stays(agrees: Agrees) -> None:
    node, kernel = convolution(agrees(nn.Conv2d(3, 4, 3, padding=1), torch.randn(1, 3, 2, 2)))
    assert kernel == (3, 3) and set(node.integers("padding")) == {1}


def test_weights_that_are_not_constant_stay(agrees: Agrees) -> None:
    def model(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return nn.functional.conv2d(x, weight, padding=9, dilation=9)

    (node,) = [node for node in agrees(model, torch.randn(1, 3, 5, 5), torch.randn(4, 3, 3, 3)).graph if node.op == "conv2d"]
    assert set(node.integers("padding")) == {9}


def test_infinite_weights_stay() -> None:
    module = nn.Conv2d(1, 1, 3, padding=9, dilation=9)
    with torch.no_grad():
        module.weight[0, 0, 0, 0] = torch.inf
    (node,) = [node for node in extract(module, torch.randn(1, 1, 5, 5)).graph if node.op == "conv2d"]
    assert set(node.integers("padding")) == {9}


def test_sums_of_kernels_are_trimmed_together(agrees: Agrees) -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide, self.narrow = nn.Conv2d(3, 4, 3, padding=9, dilation=9), nn.Conv2d(3, 4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            total: torch.Tensor = self.wide(x) + self.narrow(x)
            return total

    _, kernel = convolution(agrees(Sum(), torch.randn(1, 3, 5, 5)))
    assert kernel == (1, 1)


def test_results_are_the_same_for_drawn_sizes() -> None:
    """Along one dimension, in whole numbers."""
    rng, trimmed = np.random.default_rng(0), 0
    for _ in range(2000):
        extent, taps, stride, dilation, before, after = (int(rng.integers(low, high)) for low, high in ((1, 8), (1, 6), (1, 4), (1, 9), (0, 12), (0, 12)))
        outputs = (extent + before + after - dilation * (taps - 1) - 1) // stride + 1
        if outputs < 1:
            continue
        one = _Dimension(extent, outputs, taps, stride, dilation, before, after)
        data, weight = rng.integers(1, 9, extent), rng.integers(1, 9, taps)
        kept, other = one.kept, one.trimmed
        trimmed += one.is_shorter
        assert other.before >= 0 and other.after >= 0 and other.taps == len(kept) >= 1
        assert (other.extent + other.before + other.after - other.dilation * (other.taps - 1) - 1) // stride + 1 == outputs
        assert (results(one, data, weight) == results(other, data, weight[kept.start : kept.stop])).all()
        assert not other.is_shorter
    assert trimmed > 200


def results(one: _Dimension, data: np.ndarray, weight: np.ndarray) -> np.ndarray:
    padded = np.concatenate([np.zeros(one.before, int), data, np.zeros(one.after, int)])
    return np.array([sum(weight[tap] * padded[place * one.stride + tap * one.dilation] for tap in range(one.taps)) for place in range(one.outputs)])
