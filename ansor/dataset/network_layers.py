"""Layers drawn at random in the form that graphs of networks give them: channels last, constant weights, and an epilogue.

Most time of networks goes into such products and convolutions, in sizes for which small differences between good programs count. A seed always gives the same
layer. Record files name a layer by its seed only, so any change here makes earlier records useless.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ansor import te
from ansor.ir.dag import Dag
from ansor.te import nn
from ansor.te.tensor import Tensor

SEED = 20261130
LAYER_SEEDS, TALL_SEEDS, WINDOW_SEEDS = range(360), range(300), range(150)
"""The seeds that are tasks."""

LEAST_FLOP, MOST_FLOP = 4e6, 1.2e9
MOST_ELEMENTS = 8 << 20
"""The most elements of one tensor."""

IMAGES = (7, 8, 10, 12, 13, 14, 16, 20, 24, 26, 28, 32, 38, 40, 48, 52, 56, 64, 80, 96, 112)
TALL_IMAGES = (10, 13, 14, 16, 20, 24, 28, 32, 40, 48, 56, 56, 64, 80, 112)
WINDOWS = (3, 3, 3, 5, 7)
GROUP_WIDTHS = (48, 48, 64, 64, 64, 80, 96, 112)
DEPTHS = (2, 3, 4, 4, 6, 8, 8, 16)

ACTIVATIONS: Sequence[Callable[[Tensor], Tensor]] = (lambda x: x, nn.relu, nn.relu6, nn.silu, nn.gelu)
AFTER_SUM = 2
"""The number of activations that also follow the sum with another tensor."""

Product = tuple[Tensor, Tensor, Tensor]
"""The data and the weights of a layer, and their product."""


def network_layer(seed: int) -> list[Tensor]:
    """Any layer: its inputs, its constants and its result."""
    return _layer(np.random.default_rng([seed, SEED]), lambda rng: LAYERS[int(rng.choice(len(LAYERS), p=SHARES))](rng))


def tall_product(seed: int) -> list[Tensor]:
    """A product of many rows, as 1x1 convolutions become: its inputs, its constants and its result."""
    return _layer(np.random.default_rng([seed, SEED, 1]), tall)


def window_layer(seed: int) -> list[Tensor]:
    """A convolution that Winograd's method can compute, maybe in groups or over three dimensions: its inputs, its constants and its result."""
    return _layer(np.random.default_rng([seed, SEED, 3]), lambda rng: WINDOW_LAYERS[int(rng.choice(len(WINDOW_LAYERS), p=WINDOW_SHARES))](rng))


def _layer(rng: np.random.Generator, draw: Callable[[np.random.Generator], Product]) -> list[Tensor]:
    while True:
        tensors = _finished(rng, *draw(rng))
        if LEAST_FLOP <= Dag(tensors).flop <= MOST_FLOP and all(math.prod(one.shape) <= MOST_ELEMENTS for one in tensors):
            return tensors


def _finished(rng: np.random.Generator, data: Tensor, weight: Tensor, product: Tensor) -> list[Tensor]:
    """With a bias, and maybe a sum with another tensor and an activation."""
    bias = te.placeholder(product.shape[-1:], name="bias", constant=True)
    inputs, result = [data, weight, bias], nn.bias_add(product, bias, axis=len(product.shape) - 1)
    is_summed = rng.random() < 0.3
    if is_summed:
        inputs.append(te.placeholder(product.shape, name="operand"))
        result = nn.add(result, inputs[-1])
    return [*inputs, ACTIVATIONS[int(rng.integers(AFTER_SUM if is_summed else len(ACTIVATIONS)))](result)]


def pointwise(rng: np.random.Generator) -> Product:
    """A 1x1 convolution."""
    return _convolution(rng, 1, 2 if rng.random() < 0.12 else 1)


def convolution(rng: np.random.Generator) -> Product:
    """A convolution of a larger window."""
    return _convolution(rng, WINDOWS[int(rng.integers(len(WINDOWS)))], 2 if rng.random() < 0.3 else 1)


def depthwise(rng: np.random.Generator) -> Product:
    """A depthwise convolution."""
    window, stride = WINDOWS[int(rng.integers(len(WINDOWS)))], 2 if rng.random() < 0.3 else 1
    channels = _channels(rng, 32, 1024)
    data, weight = _image(rng, channels), te.placeholder((window, window, 1, channels), name="weight", constant=True)
    return data, weight, nn.conv2d(data, weight, stride, window // 2, groups=channels, data_layout="NHWC")


def dense(rng: np.random.Generator) -> Product:
    """Data times weights, for a few rows to some hundreds."""
    rows = 1 if rng.random() < 0.08 else int(round(2 ** rng.uniform(4, 10)))
    inputs, outputs = _channels(rng, 128, 4096), _channels(rng, 128, 4096)
    data, weight = te.placeholder((rows, inputs), name="data"), te.placeholder((outputs, inputs), name="weight", constant=True)
    return data, weight, nn.dense(data, weight)


def tall(rng: np.random.Generator) -> Product:
    """Data times weights, with a row for every place of images."""
    batch = _batch(rng)
    image = 7 if rng.random() < 0.06 else int(rng.choice(TALL_IMAGES))
    inputs, outputs = _channels(rng, 12, 1024), _channels(rng, 12, 1024)
    data, weight = te.placeholder((batch * image * image, inputs), name="data"), te.placeholder((outputs, inputs), name="weight", constant=True)
    return data, weight, nn.dense(data, weight)


LAYERS: Sequence[Callable[[np.random.Generator], Product]] = (pointwise, convolution, depthwise, dense)
SHARES = (0.4, 0.12, 0.1, 0.38)
"""The probability of each layer."""


def whole_window(rng: np.random.Generator) -> Product:
    """A convolution of 3 x 3 taps."""
    channels, outputs = _channels(rng, 24, 768), _channels(rng, 24, 768)
    data, weight = _image(rng, channels), te.placeholder((3, 3, channels, outputs), name="weight", constant=True)
    return data, weight, nn.conv2d(data, weight, 1, 1, data_layout="NHWC")


def grouped_window(rng: np.random.Generator) -> Product:
    """The same in groups."""
    width, groups = int(rng.choice(GROUP_WIDTHS)), int(round(2 ** rng.uniform(1, 4.2)))
    data, weight = _image(rng, width * groups), te.placeholder((3, 3, width, width * groups), name="weight", constant=True)
    return data, weight, nn.conv2d(data, weight, 1, 1, groups=groups, data_layout="NHWC")


def deep_window(rng: np.random.Generator) -> Product:
    """The same over three dimensions, with three taps in depth or one."""
    channels, outputs, depth, size = _channels(rng, 24, 512), _channels(rng, 24, 512), int(rng.choice(DEPTHS)), int(rng.choice(IMAGES))
    taps = 1 if rng.random() < 0.2 else 3
    data = te.placeholder((1, depth, size, size, channels), name="data")
    weight = te.placeholder((taps, 3, 3, channels, outputs), name="weight", constant=True)
    return data, weight, nn.conv3d(data, weight, 1, (taps // 2, 1, 1), data_layout="NDHWC")


WINDOW_LAYERS: Sequence[Callable[[np.random.Generator], Product]] = (whole_window, grouped_window, deep_window)
WINDOW_SHARES = (0.4, 0.35, 0.25)
"""The probability of each layer."""


def _convolution(rng: np.random.Generator, window: int, stride: int) -> Product:
    channels, outputs = _channels(rng, 16, 2048), _channels(rng, 16, 2048)
    data, weight = _image(rng, channels), te.placeholder((window, window, channels, outputs), name="weight", constant=True)
    return data, weight, nn.conv2d(data, weight, stride, window // 2, data_layout="NHWC")


def _image(rng: np.random.Generator, channels: int) -> Tensor:
    batch = _batch(rng)
    size = IMAGES[int(rng.integers(len(IMAGES)))]
    return te.placeholder((batch, size, size, channels), name="data")


def _batch(rng: np.random.Generator) -> int:
    """Mostly one image."""
    return int(rng.choice([2, 4, 8])) if rng.random() < 0.1 else 1


def _channels(rng: np.random.Generator, least: int, most: int) -> int:
    """Any number in this range, as likely in each octave; mostly a multiple of 8, often of 64."""
    number = 2 ** rng.uniform(math.log2(least), math.log2(most))
    step = int(rng.choice([1, 8, 16, 64], p=[0.05, 0.25, 0.3, 0.4]))
    return max(step, round(number / step) * step)
