from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from ansor.graph.from_torch import from_torch
from ansor.graph.passes.batch_norm import fold_batch_norm
from ansor.graph.tasks import ExtractedGraph

pytestmark = pytest.mark.torch


Norm = nn.modules.batchnorm._BatchNorm


def settled(norm: Norm) -> Norm:
    assert norm.running_mean is not None and norm.running_var is not None
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    nn.init.normal_(norm.running_mean)
    nn.init.uniform_(norm.running_var, 0.1, 2.0)
    return norm.eval()


def operators(model: nn.Module, *shape: int) -> list[str]:
    return [node.op for node in fold_batch_norm(from_torch(model.eval(), torch.zeros(shape)).graph)]


PRODUCERS: dict[str, tuple[nn.Module, Norm, tuple[int, ...]]] = {
    "conv2d": (nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), (2, 4, 5, 5)), "grouped": (nn.Conv2d(4, 6, 3, groups=2), nn.BatchNorm2d(6), (2, 4, 5, 5)),
    "without bias": (nn.Conv2d(4, 6, 3, bias=False), nn.BatchNorm2d(6), (2, 4, 5, 5)),
    "transposed": (nn.ConvTranspose2d(4, 6, 3, 2), nn.BatchNorm2d(6), (2, 4, 5, 5)),
    "transposed groups": (nn.ConvTranspose2d(4, 6, 2, 2, groups=2), nn.BatchNorm2d(6), (2, 4, 5, 5)),
    "linear": (nn.Linear(4, 6), nn.BatchNorm1d(6), (3, 4)), "plain": (nn.Conv1d(4, 6, 3), nn.BatchNorm1d(6, affine=False), (2, 4, 9)),
}


@pytest.mark.parametrize("name", PRODUCERS)
def test_it_folds_into_weights(name: str, agrees: Callable[..., ExtractedGraph]) -> None:
    producer, norm, shape = PRODUCERS[name]
    model = nn.Sequential(producer, settled(norm) if norm.affine else norm.eval())
    assert "mul" not in operators(model, *shape) and len(operators(model, *shape)) == 1
    agrees(model, torch.randn(shape), tolerance=1e-5)


def test_weights_are_scaled_in_double_precision_and_rounded_once() -> None:
    conv, norm = nn.Conv2d(3, 4, 3), settled(nn.BatchNorm2d(4))
    graph = fold_batch_norm(from_torch(nn.Sequential(conv, norm).eval(), torch.zeros(1, 3, 5, 5)).graph)
    weight, bias = (graph.constants[name] for name in graph.nodes[0].inputs[1:])
    exact = nn.utils.fuse_conv_bn_eval(conv.double().eval(), norm.double())
    np.testing.assert_array_equal(weight, exact.weight.detach().float().numpy())
    assert exact.bias is not None
    np.testing.assert_allclose(bias.astype(np.float64), exact.bias.detach().numpy(), rtol=1e-7)


def test_nothing_to_fold_into_gives_a_scale_and_a_shift(agrees: Callable[..., ExtractedGraph]) -> None:
    model = nn.Sequential(nn.ReLU(), settled(nn.BatchNorm2d(4)))
    assert operators(model, 1, 4, 3, 3) == ["relu", "mul", "add"]
    agrees(model, torch.randn(2, 4, 3, 3))


def test_a_convolution_that_others_read_keeps_its_weights(agrees: Callable[..., ExtractedGraph]) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3), settled(nn.BatchNorm2d(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.conv(x)
            result: torch.Tensor = x * self.norm(x)
            return result

    assert operators(Model(), 1, 3, 5, 5) == ["conv2d", "mul", "add", "mul"]
    agrees(Model(), torch.randn(1, 3, 5, 5))
