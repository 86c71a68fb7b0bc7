"""The four networks of MLPerf Tiny, from their published architectures, with random weights.

ds_cnn: keyword spotting, 49x10 features, 12 words (Zhang et al., "Hello Edge", 2017, the small one). mobilenet_v1_025: visual wake words, 96x96 images, 2
classes (Howard et al., 2017, a quarter of the width). autoencoder: anomalies in machine sound, 640 features (DCASE 2020, task 2). resnet8: CIFAR-10,
32x32 images (He et al., 2015, three stages of one block).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from ansor.zoo.weights import settled

CALIBRATION = 8
"""The number of inputs for quantisation."""


def _conv(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


class DsCnn(nn.Sequential):
    """[1, 1, 49, 10]: a 10x4 convolution of stride 2 to 64 channels, then four depthwise separable ones."""

    def __init__(self) -> None:
        first = [nn.ZeroPad2d((1, 1, 4, 5)), nn.Conv2d(1, 64, (10, 4), 2, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        blocks = [layer for _ in range(4) for layer in (*_conv(64, 64, 3, groups=64), *_conv(64, 64, 1))]
        super().__init__(*first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 12), nn.Softmax(1))


class MobileNetV1(nn.Sequential):
    """[1, 3, 96, 96]: a 3x3 convolution of stride 2 to 8 channels, then thirteen depthwise separable ones up to 256."""

    def __init__(self) -> None:
        layers, channels = _conv(3, 8, 3, 2), 8
        for outputs, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *((128, 1),) * 5, (256, 2), (256, 1)):
            layers += [*_conv(channels, channels, 3, stride, channels), *_conv(channels, outputs, 1)]
            channels = outputs
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 2), nn.Softmax(1))


class Autoencoder(nn.Sequential):
    """[1, 640]: four dense layers of 128, one of 8, four of 128, one of 640."""

    def __init__(self) -> None:
        sizes = (640, 128, 128, 128, 128, 8, 128, 128, 128, 128)
        layers: list[nn.Module] = []
        for inputs, outputs in zip(sizes, sizes[1:], strict=False):
            layers += [nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU()]
        super().__init__(*layers, nn.Linear(sizes[-1], 640))


class Block(nn.Module):
    """Two 3x3 convolutions, with a parallel 1x1 one if the size changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*_conv(inputs, outputs, 3, stride), *_conv(outputs, outputs, 3)[:2])
        self.beside = nn.Conv2d(inputs, outputs, 1, stride) if stride != 1 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.relu(self.body(x) + self.beside(x))
        return result


class ResNet8(nn.Sequential):
    """[1, 3, 32, 32]: a 3x3 convolution to 16 channels, then blocks of 16, 32 and 64."""

    def __init__(self) -> None:
        blocks = (Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
        super().__init__(*_conv(3, 16, 3), *blocks, nn.AvgPool2d(8), nn.Flatten(), nn.Linear(64, 10), nn.Softmax(1))


def ds_cnn() -> nn.Module:
    return settled(DsCnn, (1, 49, 10))


def mobilenet_v1_025() -> nn.Module:
    return settled(MobileNetV1, (3, 96, 96))


def autoencoder() -> nn.Module:
    return settled(Autoencoder, (640,))


def resnet8() -> nn.Module:
    return settled(ResNet8, (3, 32, 32))


def samples(shape: tuple[int, ...]) -> list[torch.Tensor]:
    """Random calibration inputs, the same in each process. The first is the example."""
    return list(torch.randn(CALIBRATION, 1, *shape, generator=torch.Generator().manual_seed(1)))


@dataclass(frozen=True)
class TinyNetwork:
    """model: creates it; shape: of one input, without the batch, which is 1."""

    model: Callable[[], nn.Module]
    shape: tuple[int, ...]

    def samples(self) -> list[torch.Tensor]:
        """Calibration inputs."""
        return samples(self.shape)


NETWORKS = {
    "ds_cnn": TinyNetwork(ds_cnn, (1, 49, 10)), "mobilenet_v1_025": TinyNetwork(mobilenet_v1_025, (3, 96, 96)),
    "autoencoder": TinyNetwork(autoencoder, (640,)), "resnet8": TinyNetwork(resnet8, (3, 32, 32)),
}  # fmt: skip
"""The networks by name."""
