"""Evaluates a small residual network for many rows, by `network.c`, and finds equal rows, so that each is evaluated once."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.optional_library import loaded_if_built
from ansor.codegen.toolchain import Compiler, cached_library, find_compiler

SOURCE = Path(__file__).with_name("network.c")
ROWS = 32
"""Rows that network.c processes at a time."""

UNITS = 8
"""Units held in registers: a layer has a multiple of them."""

Floats = NDArray[np.float32]
Places = NDArray[np.int64]


class Outputs(Protocol):
    """Evaluates a network."""

    def __call__(self, rows: Floats) -> NDArray[np.float64]:
        """The output of each of the rows [n, inputs], [n]."""
        ...

    def in_parts(self, rows: Floats) -> tuple[NDArray[np.float64], Floats]:
        """The outputs, and each unit's contribution, [n, units]."""
        ...


@dataclass(frozen=True, eq=False)
class Scaling:
    """The number to subtract from each input, and then its factor, [inputs]."""

    mean: Floats
    scale: Floats


@dataclass(frozen=True, eq=False)
class Layers:
    """Parameters of a network, float32. first: [inputs, units]; weights: [layers, units, units]; biases accordingly; last: [units].

    With x = (row - inputs.mean) * inputs.scale, clipped to `limit`: h = max(x first + b, 0),
    then h = h + max(h w + b, 0) for each further layer; output = h last + b.
    """

    inputs: Scaling
    first: Floats
    first_bias: Floats
    weights: Floats
    bias: Floats
    last: Floats
    last_bias: float
    limit: float


def network_library(compiler: Compiler) -> Path:
    """The shared library of `network.c`. Raises ToolchainError if it does not build."""
    return cached_library(compiler, "network", SOURCE.read_text())


def outputs_of(layers: Layers) -> Outputs:
    """A function for the outputs of a network: by `network.c`, or NumPy without a compiler or for units that are not a multiple of UNITS."""
    library = _library()
    return _InC(library, layers) if library is not None and len(layers.last) % UNITS == 0 else _InNumPy(layers)


@lru_cache
def _library() -> ctypes.CDLL | None:
    loaded = loaded_if_built(lambda: network_library(find_compiler()), "networks are evaluated by NumPy, which takes several times as long")
    if loaded is None:
        return None
    address = ctypes.c_void_p
    size = ctypes.c_int64
    loaded.ansor_network_run.argtypes, loaded.ansor_network_run.restype = [address, address, size, address, address, address], None
    loaded.ansor_network_distinct.argtypes, loaded.ansor_network_distinct.restype = [address, size, size, address, address, address, size], size
    return loaded


def distinct(rows: Floats) -> tuple[Floats, Places]:
    """The bitwise distinct rows of [n, inputs], and the index of each row among them, [n]. All rows without a compiler.

    Statements that depend on few choices are the same in many programs of a population.
    """
    given, count = np.ascontiguousarray(rows, np.float32), len(rows)
    library = _library()
    if library is None:
        return given, np.arange(count)
    kept, places, table = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(2 << count.bit_length(), np.int32)
    found = library.ansor_network_distinct(_address(given), count, given.shape[1], _address(kept), _address(places), _address(table), len(table))
    return given if found == count else given[kept[:found]], places


@dataclass(frozen=True, eq=False)
class _InNumPy:
    layers: Layers

    def __call__(self, rows: Floats) -> NDArray[np.float64]:
        return self.in_parts(rows)[0]

    def in_parts(self, rows: Floats) -> tuple[NDArray[np.float64], Floats]:
        net = self.layers
        hidden = np.clip((_checked(net, rows) - net.inputs.mean) * net.inputs.scale, -net.limit, net.limit)
        hidden = np.maximum(hidden @ net.first + net.first_bias, 0)
        for weights, bias in zip(net.weights, net.bias, strict=True):
            hidden = hidden + np.maximum(hidden @ weights + bias, 0)
        outputs: NDArray[np.float64] = (hidden @ net.last + np.float32(net.last_bias)).astype(np.float64)
        return outputs, (hidden * net.last).astype(np.float32)


class _Struct(ctypes.Structure):
    _fields_ = (
        ("width", ctypes.c_int64), ("inputs", ctypes.c_int64), ("units", ctypes.c_int64), ("layers", ctypes.c_int64),
        ("column", ctypes.c_void_p), ("mean", ctypes.c_void_p), ("scale", ctypes.c_void_p),
        ("first", ctypes.c_void_p), ("first_bias", ctypes.c_void_p), ("weights", ctypes.c_void_p), ("bias", ctypes.c_void_p), ("last", ctypes.c_void_p),
        ("last_bias", ctypes.c_float), ("limit", ctypes.c_float),
    )  # fmt: skip


class _InC:
    def __init__(self, library: ctypes.CDLL, layers: Layers) -> None:
        self._run, self._layers = library.ansor_network_run, layers
        column = np.flatnonzero(layers.inputs.scale).astype(np.int32)  # one without a scale carries no information
        first, weights = _in_groups(layers.first[column]), np.array([_in_groups(one) for one in layers.weights], np.float32)
        held = (layers.inputs.mean[column], layers.inputs.scale[column], first, layers.first_bias, weights, layers.bias, layers.last)
        self._arrays = [column, *(np.ascontiguousarray(one, np.float32) for one in held)]
        sizes = len(layers.inputs.mean), len(column), len(layers.last), len(layers.weights)
        self._struct = _Struct(*sizes, *map(_address, self._arrays), layers.last_bias, layers.limit)

    def __call__(self, rows: Floats) -> NDArray[np.float64]:
        return self._outputs(rows, None)

    def in_parts(self, rows: Floats) -> tuple[NDArray[np.float64], Floats]:
        parts = np.empty((len(rows), self._struct.units), np.float32)
        return self._outputs(rows, parts), parts

    def _outputs(self, rows: Floats, parts: Floats | None) -> NDArray[np.float64]:
        given = np.ascontiguousarray(_checked(self._layers, rows), np.float32)
        outputs, scratch = np.empty(len(given)), np.empty((self._struct.inputs + 2 * self._struct.units) * ROWS + ROWS, np.float32)
        wanted = None if parts is None else _address(parts)
        self._run(ctypes.addressof(self._struct), _address(given), len(given), _address(scratch), _address(outputs), wanted)
        return outputs


def _checked(layers: Layers, rows: Floats) -> Floats:
    if rows.ndim != 2 or rows.shape[1] != len(layers.inputs.mean):
        raise ValueError(f"asked for a network's output for rows of shape {rows.shape}; it needs {len(layers.inputs.mean)} features: pass rows as wide")
    return rows


def _in_groups(weights: Floats) -> Floats:
    """[inputs, units] as [units / UNITS, inputs, UNITS]."""
    inputs, units = weights.shape
    return np.ascontiguousarray(weights.reshape(inputs, units // UNITS, UNITS).transpose(1, 0, 2))


def _address(array: NDArray[np.generic]) -> int:
    return int(array.__array_interface__["data"][0])
