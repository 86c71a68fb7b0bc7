"""Eight operators, each with the result of 128 trials of TVM's MetaSchedule. `short_time.py` says how it was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansor.te import nn, placeholder
from ansor.te.tensor import Tensor
from ansor.zoo import operators


@dataclass(frozen=True)
class Rival:
    """The other tuner's result: the seconds of tuning, and the GFLOP/s of its best program."""

    tensors: Callable[[], list[Tensor]]
    gflops: float
    seconds: float


def conv(channels: int, size: int, filters: int, kernel: int, stride: int, padding: int) -> list[Tensor]:
    """A convolution in NCHW, batch 1."""
    data = placeholder((1, channels, size, size), name="data")
    weight = placeholder((filters, channels, kernel, kernel), name="weight", constant=True)
    return [data, weight, nn.conv2d(data, weight, stride, padding)]


RIVALS = {
    "mm512": Rival(lambda: operators.matmul(512, 512, 512), 217, 127),
    "mm1024": Rival(lambda: operators.matmul(1024, 1024, 1024), 157, 373),
    "c64": Rival(lambda: conv(64, 56, 64, 3, 1, 1), 72, 199),
    "c128": Rival(lambda: conv(128, 28, 128, 3, 1, 1), 144, 160),
    "c256": Rival(lambda: conv(256, 14, 256, 3, 1, 1), 165, 161),
    "c512": Rival(lambda: conv(512, 7, 512, 3, 1, 1), 90, 169),
    "c1x1": Rival(lambda: conv(64, 56, 64, 1, 1, 0), 97, 187),
    "c7": Rival(lambda: conv(3, 224, 64, 7, 2, 3), 63, 186),
}
