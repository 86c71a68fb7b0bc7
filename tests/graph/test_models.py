"""Whole networks, small: the front end with NumPy for kernels equals PyTorch, and nothing is left to PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import transformers
from torch import nn

from ansor.graph.tasks import ExtractedGraph, extract
from ansor.zoo.mobilenet import MobileNetV2
from ansor.zoo.resnet import BasicBlock, Bottleneck, ResNet
from ansor.zoo.weights import settled

pytestmark = pytest.mark.torch
Agrees = Callable[..., ExtractedGraph]


def test_resnet(agrees: Agrees) -> None:
    extracted = agrees(settled(lambda: ResNet(BasicBlock, (2, 2), classes=5, width=8)), torch.randn(1, 3, 32, 32))
    assert not extracted.torch_calls
    assert {task.name: task.weight for task in extracted.tasks} == {
        "transpose_1x3x32x32": 1, "conv2d_7x7_3_8_16x16_s2_bias_relu": 1, "max_pool2d_3x3_8_8x8_s2": 1, "conv2d_3x3_8_8_8x8_bias_relu": 2,
        "conv2d_3x3_8_8_8x8_bias_add_relu": 2, "conv2d_3x3_8_16_4x4_s2_bias_relu": 1, "conv2d_1x1_8_16_4x4_s2_bias": 1,
        "conv2d_3x3_16_16_4x4_bias_add_relu": 2, "conv2d_3x3_16_16_4x4_bias_relu": 1, "mean_1x4x4x16": 1, "dense_1x16x5_bias": 1,
    }


def test_bottleneck_resnet(agrees: Agrees) -> None:
    assert not agrees(settled(lambda: ResNet(Bottleneck, (1, 2), classes=5, width=4)), torch.randn(2, 3, 32, 32)).torch_calls


def test_mobilenet(agrees: Agrees) -> None:
    stages = ((1, 8, 1, 1), (6, 12, 2, 2), (6, 16, 2, 2))
    extracted = agrees(settled(lambda: MobileNetV2(5, stages, 32)), torch.randn(1, 3, 32, 32))
    assert not extracted.torch_calls
    assert sum(node.op == "transpose" for node in extracted.graph) == 1


def test_the_networks_of_the_zoo_have_these_tasks() -> None:
    resnet = extract(settled(lambda: ResNet(BasicBlock, (2, 2, 2, 2))), torch.zeros(1, 3, 224, 224))
    assert (len(resnet.tasks), sum(resnet.weights)) == (19, 24)
    mobilenet = extract(settled(MobileNetV2), torch.zeros(1, 3, 224, 224))
    assert (len(mobilenet.tasks), sum(mobilenet.weights)) == (33, 55)


def test_squeeze_and_excitation(agrees: Agrees) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.SiLU())
            self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 2, 1), nn.SiLU(), nn.Conv2d(2, 8, 1), nn.Sigmoid())
            self.end = nn.Conv2d(8, 4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.conv(x)
            result: torch.Tensor = self.end(x * self.gate(x))
            return result

    assert not agrees(Block(), torch.randn(1, 3, 12, 12)).torch_calls




def random_statistics(model: nn.Module) -> nn.Module:
    for norm in (part for part in model.modules() if isinstance(part, nn.BatchNorm2d)):
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.normal_(norm.bias)
        norm.momentum = 1.0
    with torch.no_grad():
        model.train()(torch.randn(4, 3, 32, 32))
    return model.eval()


@pytest.mark.parametrize("layer_type", ["basic", "bottleneck"])
def test_transformers_resnet(layer_type: str, agrees: Agrees) -> None:
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2], layer_type=layer_type, num_labels=5)
    model = random_statistics(transformers.ResNetForImageClassification(config))
    assert not agrees(model, pixel_values=torch.randn(1, 3, 32, 32)).torch_calls


def test_transformers_bert(agrees: Agrees) -> None:
    config = transformers.BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=100)
    extracted = agrees(transformers.BertModel(config), torch.randint(0, 100, (1, 16)))
    assert not extracted.torch_calls
    weights = {task.name: task.weight for task in extracted.tasks}
    assert weights["dense_16x32x64_bias_gelu"] == 2 and weights["dense_16x32x32_bias_add"] == 2
    mask = (torch.arange(16)[None] < torch.tensor([[16], [9]])).long()
    agrees(transformers.BertModel(config), input_ids=torch.randint(0, 100, (2, 16)), attention_mask=mask)
