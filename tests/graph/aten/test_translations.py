"""Each translation against PyTorch, with nothing left to PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as f
from torch import nn

from ansor.graph.tasks import ExtractedGraph

pytestmark = pytest.mark.torch
Model = Callable[..., object]

ELEMENTWISE: dict[str, Model] = {
    name: getattr(torch, name) for name in ("abs", "ceil", "cos", "erf", "exp", "floor", "neg", "round", "sigmoid", "sin", "tanh", "trunc", "square", "relu")
} | {
    "log": lambda x: torch.log(x.abs() + 1), "sqrt": lambda x: torch.sqrt(x.abs()), "rsqrt": lambda x: torch.rsqrt(x.abs() + 1),
    "log2": lambda x: torch.log2(x.abs() + 1), "reciprocal": lambda x: torch.reciprocal(x.abs() + 1), "gelu": f.gelu,
    "gelu tanh": lambda x: f.gelu(x, approximate="tanh"), "silu": f.silu, "hardswish": f.hardswish, "hardsigmoid": f.hardsigmoid, "relu6": f.relu6,
    "leaky_relu": lambda x: f.leaky_relu(x, 0.2), "elu": f.elu, "softplus": f.softplus, "mish": f.mish, "clamp": lambda x: x.clamp(-0.5, 0.5),
    "clamp_min": lambda x: x.clamp(min=0.1), "clamp_max": lambda x: x.clamp(max=0.1), "powers": lambda x: (x**2, x.abs() ** 0.5, x.abs() ** 1.5),
    "scalars": lambda x: (x + 1, 1 - x, x * 2, x / 3, 3 / x, x - 0.5), "alpha": lambda x: (torch.add(x, x, alpha=2), torch.sub(x, 1, alpha=3)),
    "broadcast": lambda x: x + x[0] * x[:, :1] - x.sum(), "extremes": lambda x: (torch.maximum(x, -x), torch.minimum(x, -x)),
    "compare": lambda x: ((x > 0) & ~(x < 1), x >= 0.5, (x <= 0) | (x == 1), x != 0), "where": lambda x: torch.where(x > 0, x, 0.0),
    "masked_fill": lambda x: x.masked_fill(x > 0, 7.0), "casts": lambda x: (x.int(), x.double(), (x > 0).float(), x.int() + 1, x.int() * 1.5),
    "mixed": lambda x: x + torch.arange(4) * x.int(), "integers": lambda x: (x * 10).int() - 3,
}

LAYOUT: dict[str, Model] = {
    "views": lambda x: (x.view(6, 20), x.flatten(1), x.unsqueeze(1), x[:, None].squeeze(1), x.reshape(-1)),
    "permute": lambda x: (x.permute(2, 0, 1), x.transpose(-1, 0), x[0].t(), x.mT), "expand": lambda x: (x[:1].expand(3, 6, 10), x.expand(2, 2, 6, 10)),
    "repeat": lambda x: x.repeat(2, 1, 3), "cat": lambda x: torch.cat([x, x * 2, x.int()], -1), "stack": lambda x: torch.stack([x, -x], 1),
    "slices": lambda x: (x[:, 1:4], x[..., ::2], x[:, -3:-1], x[1], x[:, -1], x.narrow(1, 2, 2)), "split": lambda x: x.split(4, 1),
    "chunk": lambda x: x.chunk(3, -1), "unbind": lambda x: x.unbind(0), "pad": lambda x: (f.pad(x, (1, 2, 3, 0)), f.pad(x, (1, 1), value=2.5)),
    "pixel_shuffle": lambda x: f.pixel_shuffle(x.reshape(1, 12, 2, 5), 2), "clone": lambda x: x.clone().contiguous().detach(),
    "dropout": lambda x: f.dropout(x, training=False),
}

REDUCTIONS: dict[str, Model] = {
    "mean": lambda x: (x.mean(), x.mean(1), x.mean((0, 2), keepdim=True)), "sum": lambda x: (x.sum(), x.sum(-1), x.int().sum()),
    "extremes": lambda x: (x.amax(1), x.amin((0, 1), keepdim=True), x.max(), x.min()), "softmax": lambda x: (f.softmax(x, 1), f.log_softmax(x, -1)),
    "layer_norm": lambda x: (f.layer_norm(x, (10,)), f.layer_norm(x, (6, 10), torch.full((6, 10), 0.5))),
    "group_norm": lambda x: f.group_norm(x, 3, torch.arange(6.0), torch.ones(6)),
    "pool1d": lambda x: (f.max_pool1d(x, 3, 2, 1), f.avg_pool1d(x, 2), f.adaptive_avg_pool1d(x, 3)),
    "matmul": lambda x: (x @ x.mT, x @ torch.ones(10, 3), torch.bmm(x, x.transpose(1, 2)), x[0].T @ x[1], torch.matmul(x, x[0].T)),
    "addmm": lambda x: (torch.addmm(torch.ones(6), x[0], x[1].T), torch.addmm(torch.ones(6, 1), x[0], x[1].T)),
    "attention": lambda x: f.scaled_dot_product_attention(x, x + 1, x * 2), "causal": lambda x: f.scaled_dot_product_attention(x, x, x, is_causal=True),
    "masked": lambda x: f.scaled_dot_product_attention(x, x, x, attn_mask=(x @ x.mT) > 0),
    "biased": lambda x: f.scaled_dot_product_attention(x[None], x[None], x[None], attn_mask=torch.arange(6.0).expand(6, 6), scale=0.3),
}


def _only_kernels(extracted: ExtractedGraph) -> None:
    assert not extracted.torch_calls


def _all(models: dict[str, Model]) -> Model:
    """One model of many, as exporting costs more than running."""
    return lambda x: {name: model(x) for name, model in models.items()}


def test_elementwise(agrees: Callable[..., ExtractedGraph]) -> None:
    _only_kernels(agrees(_all(ELEMENTWISE), torch.tensor([[-2.5, -1.0, -0.3, 0.5], [0.2, 1.0, 1.5, 30.0]])))


def test_layout(agrees: Callable[..., ExtractedGraph]) -> None:
    _only_kernels(agrees(_all(LAYOUT), torch.randn(2, 6, 10)))


def test_reductions(agrees: Callable[..., ExtractedGraph]) -> None:
    _only_kernels(agrees(_all(REDUCTIONS), torch.randn(2, 6, 10)))


WINDOWED: dict[str, nn.Module] = {
    "plain": nn.Conv2d(4, 6, 3), "strided": nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0)), "dilated": nn.Conv2d(4, 6, 3, dilation=2, padding=2, bias=False),
    "groups": nn.Conv2d(4, 6, 3, groups=2), "depthwise": nn.Conv2d(4, 8, 3, groups=4), "same": nn.Conv2d(4, 6, 4, padding="same"),
    "valid": nn.Conv2d(4, 6, 3, padding="valid"), "transposed": nn.ConvTranspose2d(4, 6, 4, 2, 1), "uneven": nn.ConvTranspose2d(4, 6, 3, 2, 1, 1),
    "transposed groups": nn.ConvTranspose2d(4, 6, 2, 2, groups=2), "max": nn.MaxPool2d(3, 2, 1), "max ceil": nn.MaxPool2d(2, 2, ceil_mode=True),
    "max dilated": nn.MaxPool2d(2, 1, dilation=2), "average": nn.AvgPool2d(3, 2, 1), "average inside": nn.AvgPool2d(3, 2, 1, count_include_pad=False),
    "average ceil": nn.AvgPool2d(2, 2, ceil_mode=True), "adaptive": nn.AdaptiveAvgPool2d(3), "adaptive max": nn.AdaptiveMaxPool2d((2, 3)),
    "global": nn.AdaptiveAvgPool2d(1), "global max": nn.AdaptiveMaxPool2d(1),
}


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")  # PyTorch's own remark on its copy of the input
@pytest.mark.parametrize("name", WINDOWED)
def test_windows(name: str, agrees: Callable[..., ExtractedGraph]) -> None:
    _only_kernels(agrees(WINDOWED[name], torch.randn(2, 4, 9, 7)))


def test_windows_over_one_and_three_dimensions(agrees: Callable[..., ExtractedGraph]) -> None:
    _only_kernels(agrees(nn.Sequential(nn.Conv1d(3, 4, 3, 2, 1), nn.BatchNorm1d(4), nn.MaxPool1d(2), nn.ConvTranspose1d(4, 2, 3)), torch.randn(2, 3, 12)))
    _only_kernels(agrees(nn.Sequential(nn.Conv3d(2, 4, 3), nn.BatchNorm3d(4), nn.ReLU(), nn.AvgPool3d(2)), torch.randn(1, 2, 6, 6, 6)))


def test_embedding(agrees: Callable[..., ExtractedGraph]) -> None:
    _only_kernels(agrees(nn.Embedding(10, 4), torch.tensor([[1, 9, 0]])))


def test_linear_of_any_rank(agrees: Callable[..., ExtractedGraph]) -> None:
    _only_kernels(agrees(nn.Linear(4, 3), torch.randn(4)))
    _only_kernels(agrees(nn.Linear(4, 3, bias=False), torch.randn(2, 5, 4)))


def test_multi_head_attention(agrees: Callable[..., ExtractedGraph]) -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.attention(x, x, x, need_weights=False)[0]
            return result

    _only_kernels(agrees(Attention(), torch.randn(2, 5, 8)))
