"""Computes integer networks in NumPy with 64-bit integers: the oracle for their kernels. Only `Rescale` and `Add` round."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ArgumentError
from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Add, AveragePool, Concat, Convolution, Dense, MaxPool, Operator, Reshape, Table, Transpose, Window

Bytes = NDArray[np.int8]
Sums = NDArray[np.int64]


def run(network: IntegerNetwork, inputs: Mapping[str, Bytes]) -> dict[str, Bytes]:
    """All tensors of one run, by name. Raises ArgumentError if an input is missing, or has the wrong shape or dtype."""
    for name in network.inputs:
        wanted = network.tensors[name].shape
        if name not in inputs or inputs[name].shape != wanted or inputs[name].dtype != np.int8:
            given = f"{inputs[name].dtype}{list(inputs[name].shape)}" if name in inputs else "nothing"
            raise ArgumentError(f"asked to run {network.name} with {given} as {name}; give int8{list(wanted)}")
    found: dict[str, Bytes] = {name: inputs[name] for name in network.inputs}
    for one in network.operators:
        found[one.output] = computed(one, *(found[name] for name in one.inputs))
    return found


@singledispatch
def computed(operator: Operator, *inputs: Bytes) -> Bytes:
    """The result of one operator."""
    raise TypeError(f"the operator {operator.kind} has no reference: write one here, with @computed.register")


@computed.register
def _(operator: Convolution, *inputs: Bytes) -> Bytes:
    taps = windows(inputs[0], operator.window, operator.window.filling)
    weights = operator.weights.astype(np.int64)
    if operator.depthwise:
        sums = np.einsum("nhwyxc,yxcm->nhwcm", taps, weights).reshape(*taps.shape[:3], -1)
    elif operator.window.groups > 1:
        split = taps.reshape(*taps.shape[:-1], operator.window.groups, -1)
        sums = np.einsum("nhwyxgc,yxcgo->nhwgo", split, weights.reshape(*weights.shape[:3], operator.window.groups, -1)).reshape(*taps.shape[:3], -1)
    else:
        sums = np.einsum("nhwk,ko->nhwo", taps.reshape(*taps.shape[:3], -1), weights.reshape(-1, weights.shape[-1]))
    found = operator.rescale.apply(sums + operator.bias)
    return found if operator.added is None else computed(operator.added, found, inputs[1])


@computed.register
def _(operator: Dense, *inputs: Bytes) -> Bytes:
    return operator.rescale.apply(inputs[0].astype(np.int64) @ operator.weights.astype(np.int64) + operator.bias)


@computed.register
def _(operator: Add, *inputs: Bytes) -> Bytes:
    left, right = (one.astype(np.int64) * factor for one, factor in zip(inputs, operator.multipliers, strict=True))
    rounded = (left + right + operator.offset) >> operator.shift
    found: Bytes = np.clip(rounded + operator.zero_point, operator.low, operator.high).astype(np.int8)
    return found


@computed.register
def _(operator: Concat, *inputs: Bytes) -> Bytes:
    return np.concatenate(inputs, operator.axis)


@computed.register
def _(operator: AveragePool, *inputs: Bytes) -> Bytes:
    return operator.rescale.apply(windows(inputs[0], operator.window, operator.window.filling).sum(axis=(3, 4)) + operator.bias)


@computed.register
def _(operator: MaxPool, *inputs: Bytes) -> Bytes:
    found: Bytes = windows(inputs[0], operator.window, -128).max(axis=(3, 4)).astype(np.int8)
    return found


@computed.register
def _(operator: Table, *inputs: Bytes) -> Bytes:
    return operator.values[inputs[0].astype(np.int64) + 128]


@computed.register
def _(operator: Transpose, *inputs: Bytes) -> Bytes:
    return np.ascontiguousarray(np.transpose(inputs[0], operator.axes))


@computed.register
def _(operator: Reshape, *inputs: Bytes) -> Bytes:
    return inputs[0].reshape(operator.to)


def windows(image: Bytes, window: Window, pad_value: int) -> Sums:
    """The elements under the window at each output position: [N, out height, out width, kernel height, kernel width, C]."""
    top, left, bottom, right = window.padding
    padded = np.pad(image.astype(np.int64), ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=pad_value)
    height, width = window.output(*image.shape[1:3])
    rows, columns = (np.arange(out)[:, None] * step + np.arange(taps)[None, :] * apart
                     for out, step, taps, apart in zip((height, width), window.strides, window.kernel, window.dilation, strict=True))  # fmt: skip
    found: Sums = padded[:, rows[:, None, :, None], columns[None, :, None, :], :]
    return found
