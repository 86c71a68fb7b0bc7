"""Ten small models as PyTorch exports them, from the building blocks of the model zoo's families."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

Made = tuple[nn.Module, tuple[torch.Tensor, ...]]


class Residual(nn.Module):
    """A block of ResNet."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8))
        self.shortcut = nn.Conv2d(3, 8, 1, 2)
        self.classes = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.classes(torch.relu(self.body(x) + self.shortcut(x)).mean((2, 3)))
        return found


class Squeezed(nn.Module):
    """Squeeze and excitation with hard swishes, as in MobileNetV3."""

    def __init__(self) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(4, 4, 3, padding=1, groups=4)
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 2, 1), nn.ReLU6(), nn.Conv2d(2, 4, 1), nn.Hardsigmoid())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.hardswish(self.depthwise(x))
        found: torch.Tensor = y * self.gate(y)
        return found


class Fire(nn.Module):
    """Concatenated branches, as in SqueezeNet and Inception."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.three = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.relu(self.one(x)), nn.functional.max_pool2d(self.three(x), 3, 1, 1), nn.functional.avg_pool2d(x, 3, 1, 1)], 1)


class Shuffled(nn.Module):
    """Shuffled channels, as in ShuffleNet."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = x.chunk(2, 1)
        both = torch.stack([left, torch.sigmoid(right)], 2)
        return both.reshape(x.shape)[:, :, ::2]


class Unet(nn.Module):
    """Downsampling, then upsampling by a transposed convolution and by interpolation."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up, self.last = nn.Conv2d(3, 6, 3, 2, 1), nn.ConvTranspose2d(6, 4, 2, 2), nn.Conv2d(7, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.up(torch.relu(self.down(x)))
        mask = self.last(torch.cat([y, x], 1))
        return nn.functional.interpolate(mask, scale_factor=2.0, mode="bilinear", align_corners=False)


class Bert(nn.Module):
    """Embeddings, attention with a mask, layer norms, GELU."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(30, 16), nn.Embedding(8, 16)
        self.inward, self.outward = nn.Linear(16, 48), nn.Linear(16, 16)
        self.norm, self.wide, self.narrow = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.words(words) + self.places(torch.arange(words.shape[1]))
        query, key, value = (one.reshape(*one.shape[:2], 2, 8).transpose(1, 2) for one in self.inward(x).chunk(3, -1))
        scores = query @ key.transpose(-1, -2) / 8**0.5 + (1.0 - mask[:, None, None, :].float()) * -1e4
        seen = (scores.softmax(-1) @ value).transpose(1, 2).reshape(x.shape)
        x = self.norm(x + self.outward(seen))
        found: torch.Tensor = self.narrow(nn.functional.gelu(self.wide(x)))
        return torch.tanh(found[:, 0])


class Rotary(nn.Module):
    """Positions as rotations, RMS norm and SiLU, as in LLaMA."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.scale = nn.Linear(8, 16), nn.Linear(8, 16), nn.Parameter(torch.rand(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angle = torch.arange(x.shape[1])[:, None] * torch.tensor([1.0, 0.1, 0.01, 0.001]).repeat(2)
        turned = x * angle.cos() + torch.cat([-x[..., 4:], x[..., :4]], -1) * angle.sin()
        normed = turned * torch.rsqrt(turned.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale
        found: torch.Tensor = nn.functional.silu(self.gate(normed)) * self.up(normed)
        return found


class Superresolution(nn.Module):
    """A pixel shuffle, a PReLU and a padding by reflection."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.slope = nn.Conv2d(1, 8, 3), nn.PReLU(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        padded = nn.functional.pad(x, (1, 1, 1, 1), mode="reflect")
        return nn.functional.pixel_shuffle(self.slope(self.conv(padded)), 2).clamp(0, 1)


class Detector(nn.Module):
    """Scores and positions of the best of many boxes."""

    def forward(self, boxes: torch.Tensor, scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        best, place = scores.softmax(-1).max(-1)
        corners = torch.stack([boxes[..., 0] - boxes[..., 2] / 2, boxes[..., 1] + boxes[..., 3].exp()], -1)
        return best, place, torch.where(best[..., None] > 0.3, corners, torch.zeros_like(corners))


def _sequence() -> nn.Module:
    return nn.Sequential(nn.Conv1d(4, 6, 5, 2, 2), nn.GroupNorm(2, 6), nn.ELU(), nn.InstanceNorm1d(6, affine=True), nn.LeakyReLU(0.1), nn.AdaptiveMaxPool1d(1))


MODELS: Mapping[str, Callable[[], Made]] = {
    "residual": lambda: (Residual(), (torch.randn(1, 3, 8, 8),)),
    "squeezed": lambda: (Squeezed(), (torch.randn(1, 4, 6, 6),)),
    "fire": lambda: (Fire(), (torch.randn(1, 4, 6, 6),)),
    "shuffled": lambda: (Shuffled(), (torch.randn(1, 4, 6, 6),)),
    "unet": lambda: (Unet(), (torch.randn(1, 3, 8, 8),)),
    "bert": lambda: (Bert(), (torch.randint(0, 30, (2, 6)), torch.ones(2, 6, dtype=torch.int64))),
    "rotary": lambda: (Rotary(), (torch.randn(1, 5, 8),)),
    "superresolution": lambda: (Superresolution(), (torch.rand(1, 1, 6, 6),)),
    "detector": lambda: (Detector(), (torch.rand(1, 7, 4), torch.randn(1, 7, 3))),
    "sequence": lambda: (_sequence(), (torch.randn(1, 4, 16),)),
}
