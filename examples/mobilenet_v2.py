"""MobileNet-V2 in plain torch.nn. Layers and names match torchvision's, so its state dicts load here.

    ansor tune examples/mobilenet_v2.py

A file to tune has two functions: `model()` returns the module, `example_inputs()` its arguments.
"""

import torch
from torch import nn


class ConvNormReLU(nn.Sequential):
    def __init__(self, inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> None:
        conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        super().__init__(conv, nn.BatchNorm2d(outputs), nn.ReLU6(inplace=True))


class InvertedResidual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        widen = [ConvNormReLU(inputs, hidden, 1)] if expansion != 1 else []
        narrow = [nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.conv = nn.Sequential(*widen, ConvNormReLU(hidden, hidden, 3, stride, hidden), *narrow)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.conv(x) if self.residual else self.conv(x)


STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))  # expansion, channels, blocks, stride


class MobileNetV2(nn.Module):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [ConvNormReLU(3, 32, stride=2)]
        channels = 32
        for expansion, outputs, blocks, stride in STAGES:
            for block in range(blocks):
                layers.append(InvertedResidual(channels, outputs, stride if block == 0 else 1, expansion))
                channels = outputs
        self.features = nn.Sequential(*layers, ConvNormReLU(channels, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(torch.flatten(x, 1))


def model() -> nn.Module:
    """The network with random weights, the same in each process. Batch norms have the statistics of a batch of images, as after training."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = MobileNetV2()
        for norm in (part for part in network.modules() if isinstance(part, nn.BatchNorm2d)):
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.normal_(norm.bias, 0.0, 0.1)
            norm.momentum = 1.0
        with torch.no_grad():
            network.train()(torch.randn(4, 3, 64, 64))
    return network.eval()


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(1)),)
