from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from ansor.graph.tasks import ExtractedGraph

pytestmark = pytest.mark.torch


def operators(extracted: ExtractedGraph) -> list[str]:
    return [node.op for node in extracted.graph if node.op not in ("transpose", "reshape")]


def test_zero_padding_goes_into_the_convolution(agrees: Callable[..., ExtractedGraph]) -> None:
    extracted = agrees(nn.Sequential(nn.ZeroPad2d((0, 1, 2, 3)), nn.Conv2d(3, 4, 3, padding=1)), torch.randn(1, 3, 6, 6))
    assert operators(extracted) == ["conv2d"]
    assert next(node for node in extracted.graph if node.op == "conv2d").integers("padding") == (3, 1, 4, 2)


def test_other_padding_stays(agrees: Callable[..., ExtractedGraph]) -> None:
    assert operators(agrees(nn.Sequential(nn.ConstantPad2d(1, 2.0), nn.Conv2d(3, 4, 3)), torch.randn(1, 3, 6, 6))) == ["pad", "conv2d"]
    assert operators(agrees(nn.Sequential(nn.ZeroPad2d(1), nn.MaxPool2d(3)), torch.randn(1, 3, 7, 7))) == ["pad", "pool2d"]
