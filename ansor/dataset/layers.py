"""Layers for boards, drawn at random: int8 convolutions, depthwise and dense layers, rescaled as in networks, and a few with int32 results.

Sizes are those of networks for microcontrollers: at most 1.5 million multiplications, so that a simulator runs a program in a fraction of a second. The same
target always gives the same layers; only targets that multiply pairs of 16-bit numbers have weights of 16 bits (`ansor.integer.widths`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import prod

import numpy as np

from ansor import te
from ansor.integer.declare import declaration
from ansor.integer.operators import SIGNED, Convolution, Dense, Form, Window
from ansor.integer.rescale import HIGH_WORD, Rescale
from ansor.integer.widths import multiplies_pairs
from ansor.targets.base import Target
from ansor.te import nn
from ansor.te.tensor import Tensor

Sizes = dict[str, int]
COUNT, DENSE = 120, 32
"""The number of layers of all kinds for a target, and of additional dense layers, which need few instructions and differ most in shape."""

LEAST_PRODUCTS, MOST_PRODUCTS = 2e4, 1.5e6
FEWEST_DENSE, MOST_DENSE = 1e3, 3e5
CHANNELS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256)
IMAGES = (3, 4, 5, 6, 7, 8, 10, 12, 13, 14, 16, 20, 24, 25, 28, 32, 40, 48)
WINDOWS = ((3, 3), (3, 3), (3, 3), (5, 5), (1, 3), (3, 1), (10, 4), (7, 7), (2, 2))
WIDE = Form(wide=True, multiple=2)


def int8_conv2d(height: int, width: int, channels: int, outputs: int, rows: int, columns: int, stride: int, wide: int) -> list[Tensor]:
    """2-d convolution, NHWC, rescaled to bytes."""
    weights = np.zeros((rows, columns, channels, outputs), np.int8)
    return _convolution((1, height, width, channels), weights, stride, bool(wide), depthwise=False)


def int8_depthwise(height: int, width: int, channels: int, rows: int, columns: int, stride: int) -> list[Tensor]:
    """Depthwise 2-d convolution, NHWC, rescaled to bytes."""
    return _convolution((1, height, width, channels), np.zeros((rows, columns, channels, 1), np.int8), stride, wide=False, depthwise=True)


def int8_dense(inputs: int, outputs: int, wide: int) -> list[Tensor]:
    """Product with a vector, rescaled to bytes."""
    bias = np.zeros(outputs, np.int32)
    made = Dense("y", ("x",), np.zeros((inputs, outputs), np.int8), bias, _rescale(bias), WIDE if wide else SIGNED)
    return declaration(made, [(1, inputs)])


def _convolution(shape: tuple[int, ...], weights: np.ndarray[tuple[int, ...], np.dtype[np.int8]], stride: int, wide: bool, depthwise: bool) -> list[Tensor]:
    rows, columns, _, outputs = weights.shape
    bias = np.zeros(shape[3] if depthwise else outputs, np.int32)
    top, left = (rows - 1) // 2, (columns - 1) // 2
    window = Window((rows, columns), (stride, stride), (top, left, rows - 1 - top, columns - 1 - left), depthwise=depthwise)
    return declaration(Convolution("y", ("x",), weights, bias, _rescale(bias), window, WIDE if wide else SIGNED), [shape])


def _rescale(bias: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Rescale:
    return Rescale(bias, HIGH_WORD, 0, rounds=False)


def int8_product(rows: int, columns: int, inputs: int) -> list[Tensor]:
    """Product of an int8 matrix with the rows of another, in int32."""
    a, b = te.placeholder((rows, inputs), "int8", "A"), te.placeholder((columns, inputs), "int8", "B")
    return [a, b, nn.dense(a, b, out_dtype="int32")]


def int8_sums(height: int, width: int, channels: int, outputs: int, rows: int, columns: int, stride: int) -> list[Tensor]:
    """2-d convolution of int8, NHWC, in int32."""
    data, weights = te.placeholder((1, height, width, channels), "int8", "A"), te.placeholder((outputs, rows, columns, channels), "int8", "W", constant=True)
    padding = (rows // 2, columns // 2)
    return [data, weights, nn.conv2d(data, weights, stride, padding, data_layout="NHWC", kernel_layout="OHWI", out_dtype="int32")]


LAYERS: Mapping[str, Callable[..., list[Tensor]]] = {
    "int8_conv2d": int8_conv2d, "int8_pointwise": int8_conv2d, "int8_depthwise": int8_depthwise, "int8_dense": int8_dense, "int8_product": int8_product,
    "int8_sums": int8_sums,
}  # fmt: skip
"""How each kind is declared."""

SHARES = (("int8_conv2d", 34), ("int8_pointwise", 24), ("int8_depthwise", 16), ("int8_dense", 10), ("int8_product", 8), ("int8_sums", 8))
"""The probability of each kind, in percent."""


def drawn_layers(target: Target) -> Iterator[tuple[str, Sizes]]:
    """Kind and sizes of `COUNT` and `DENSE` different layers for a target."""
    wide, found = multiplies_pairs(target), list[tuple[str, Sizes]]()
    rng = np.random.default_rng(20261126)
    names, weights = zip(*SHARES, strict=True)
    while len(found) < COUNT:
        kind = str(rng.choice(names, p=np.array(weights) / sum(weights)))
        sizes, products = _drawn(kind, rng)
        if LEAST_PRODUCTS <= products <= MOST_PRODUCTS and (kind, sizes) not in found:
            found.append((kind, sizes))
    while len(found) < COUNT + DENSE:
        inputs, outputs = (int(round(2 ** rng.uniform(3, 10))) for _ in range(2))
        if FEWEST_DENSE <= inputs * outputs <= MOST_DENSE:
            found.append(("int8_dense", {"inputs": inputs, "outputs": outputs}))
    for number, (kind, sizes) in enumerate(found):
        yield kind, sizes | ({"wide": int(wide and number % 5 != 0)} if kind in ("int8_conv2d", "int8_pointwise", "int8_dense") else {})


def _drawn(kind: str, rng: np.random.Generator) -> tuple[Sizes, int]:
    """Sizes, and the number of multiplications."""

    def among(values: tuple[int, ...]) -> int:
        return int(rng.choice(values))

    if kind == "int8_dense":
        inputs, outputs = int(rng.integers(8, 800)), among(CHANNELS)
        return {"inputs": inputs, "outputs": outputs}, inputs * outputs
    if kind == "int8_product":
        rows, columns, inputs = among(IMAGES), among(CHANNELS), among(CHANNELS)
        return {"rows": rows, "columns": columns, "inputs": inputs}, rows * columns * inputs
    height = among(IMAGES)
    width = height if rng.random() < 0.7 else among(IMAGES)
    rows, columns = (1, 1) if kind == "int8_pointwise" else WINDOWS[int(rng.integers(len(WINDOWS)))]
    stride, channels = among((1, 1, 1, 2)), among(CHANNELS)
    places = prod(-(-size // stride) for size in (height, width))
    sizes = {"height": height, "width": width, "channels": channels}
    if kind == "int8_depthwise":
        return sizes | {"rows": rows, "columns": columns, "stride": stride}, places * channels * rows * columns
    outputs = among(CHANNELS)
    return sizes | {"outputs": outputs, "rows": rows, "columns": columns, "stride": stride}, places * channels * outputs * rows * columns
