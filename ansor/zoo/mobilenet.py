"""MobileNet-V2 with torchvision's layers and names, so that its state dicts load here."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from ansor.zoo.weights import settled

STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))  # expansion, channels, blocks, stride


class ConvNormReLU(nn.Sequential):
    """Convolution, batch norm and ReLU6."""

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> None:
        conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        super().__init__(conv, nn.BatchNorm2d(outputs), nn.ReLU6(inplace=True))


class InvertedResidual(nn.Module):
    """1x1 convolution that widens, depthwise 3x3, 1x1 that narrows; a shortcut if shapes allow."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        widen = [ConvNormReLU(inputs, hidden, 1)] if expansion != 1 else []
        narrow = [nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.conv = nn.Sequential(*widen, ConvNormReLU(hidden, hidden, 3, stride, hidden), *narrow)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = x + self.conv(x) if self.residual else self.conv(x)
        return result


class MobileNetV2(nn.Module):
    """`stages`: expansion, channels, blocks and stride of each."""

    def __init__(self, classes: int = 1000, stages: Sequence[tuple[int, int, int, int]] = STAGES, last: int = 1280) -> None:
        super().__init__()
        layers: list[nn.Module] = [ConvNormReLU(3, 32, stride=2)]
        channels = 32
        for expansion, outputs, blocks, stride in stages:
            for block in range(blocks):
                layers.append(InvertedResidual(channels, outputs, stride if block == 0 else 1, expansion))
                channels = outputs
        self.features = nn.Sequential(*layers, ConvNormReLU(channels, last, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        result: torch.Tensor = self.classifier(torch.flatten(x, 1))
        return result


def mobilenet_v2() -> nn.Module:
    return settled(MobileNetV2)
