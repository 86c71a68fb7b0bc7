"""Small models of PyTorch, and ONNX files as onnxruntime's quantiser writes them."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn


class Small(nn.Module):
    """A bit of everything: strides, depthwise, a shortcut, pools, a function by table, dense, softmax. pooled: positions after the pools."""

    def __init__(self, width: int = 8, pooled: int = 3 * 2) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.apart = nn.Sequential(nn.Conv2d(width, width, 3, 1, 1, groups=width), nn.ReLU6(), nn.Conv2d(width, width, 1))
        self.last = nn.Sequential(nn.MaxPool2d(2), nn.Hardswish(), nn.Flatten(), nn.Linear(width * pooled, 5), nn.Softmax(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        result: torch.Tensor = self.last(torch.relu(x + self.apart(x)))
        return result


SHAPE = (1, 3, 12, 9)


def small() -> nn.Module:
    """Seeded."""
    return _trained(Small, SHAPE)


WIDE = (1, 3, 64, 64)


def wide() -> nn.Module:
    """The same, large enough for threads to pay. Seeded."""
    return _trained(lambda: Small(64, 16 * 16), WIDE)


def _trained(make: Callable[[], nn.Module], shape: tuple[int, ...]) -> nn.Module:
    """With statistics of a batch."""
    torch.manual_seed(3)
    model = make()
    with torch.no_grad():
        model.train()(torch.randn(8, *shape[1:]))
    return model.eval()


def samples(count: int = 8, shape: tuple[int, ...] = SHAPE) -> list[torch.Tensor]:
    """Seeded inputs."""
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(*shape, generator=generator) for _ in range(count)]


@contextmanager
def _errors_alone() -> Iterator[None]:
    """Hide warnings that libraries log with the root logger."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(level)


def quantised_file(model: nn.Module, folder: Path, *, unsigned: bool = False, per_channel: bool = True, shape: tuple[int, ...] = SHAPE) -> Path:
    """The unchanged file that torch.onnx.export and onnxruntime.quantization.quantize_static make from a model."""
    from onnxruntime import quantization

    given, made = folder / "float.onnx", folder / "quantised.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (samples(1, shape)[0],), str(given), dynamo=False, opset_version=17, input_names=["x"], output_names=["y"])

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]  # untyped
        def __init__(self) -> None:
            self.left = iter([{"x": one.numpy()} for one in samples(8, shape)])

        def get_next(self) -> dict[str, NDArray[np.float32]] | None:
            return next(self.left, None)

    kind = quantization.QuantType.QUInt8 if unsigned else quantization.QuantType.QInt8
    with _errors_alone():  # it recommends a preprocessing step that is not needed
        quantization.quantize_static(
            str(given), str(made), Reader(), quant_format=quantization.QuantFormat.QDQ, activation_type=kind, weight_type=quantization.QuantType.QInt8,
            per_channel=per_channel,
        )  # fmt: skip
    return made
