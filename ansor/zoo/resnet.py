"""ResNet-18, -34 and -50 with torchvision's layers and names, so that its state dicts load here."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from ansor.zoo.weights import settled


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _shortcut(inputs, width, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity: torch.Tensor = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        result: torch.Tensor = self.relu(self.bn2(self.conv2(x)) + identity)
        return result


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions and a shortcut."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inputs, 4 * width, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        identity: torch.Tensor = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        result: torch.Tensor = self.relu(self.bn3(self.conv3(x)) + identity)
        return result


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module | None:
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


class ResNet(nn.Module):
    """`width`: channels of the first stage; the others have 2, 4 and 8 times as many."""

    def __init__(self, block: type[BasicBlock] | type[Bottleneck], blocks: Sequence[int], classes: int = 1000, width: int = 64) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.stages = len(blocks)
        inputs = width
        for stage, count in enumerate(blocks):
            layers = []
            for index in range(count):
                layers.append(block(inputs, width << stage, 2 if stage and not index else 1))
                inputs = (width << stage) * block.expansion
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(self.stages):
            x = self.get_submodule(f"layer{stage + 1}")(x)
        result: torch.Tensor = self.fc(torch.flatten(self.avgpool(x), 1))
        return result


def resnet18() -> nn.Module:
    return settled(lambda: ResNet(BasicBlock, (2, 2, 2, 2)))


def resnet34() -> nn.Module:
    return settled(lambda: ResNet(BasicBlock, (3, 4, 6, 3)))


def resnet50() -> nn.Module:
    return settled(lambda: ResNet(Bottleneck, (3, 4, 6, 3)))
