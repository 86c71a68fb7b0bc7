"""A small residual network for the log time of statement rows, and its serialization. `fit_network` trains one."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.network_library import Layers, Outputs, Scaling, outputs_of

SCALARS = ("last_bias", "limit")
S = TypeVar("S", bound=np.generic)


SCALING = tuple(one.name for one in fields(Scaling))
LAYERS = tuple(one.name for one in fields(Layers) if one.name != "inputs")
"""The names under which numbers are saved."""


@dataclass(frozen=True, eq=False)
class Network:
    """Called with rows [r, width], it returns the correction of each row's log time, [r]. A row's result is bitwise independent of the other rows."""

    layers: Layers

    @cached_property
    def _outputs(self) -> Outputs:
        return outputs_of(self.layers)

    def __call__(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        return self._outputs(rows)

    def in_parts(self, rows: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """The same, and the contribution of each unit of the last layer, [r, units]."""
        return self._outputs.in_parts(rows)

    @property
    def width(self) -> int:
        """The width of its input rows."""
        return len(self.layers.inputs.mean)

    def document(self) -> dict[str, object]:
        """The JSON form: base64 of half-precision numbers, except means and scales, which have the range of the features."""
        inputs, layers = self.layers.inputs, self.layers
        numbers = {name: getattr(inputs, name) for name in SCALING} | {name: getattr(layers, name) for name in LAYERS}
        return {name: _written(name, value) for name, value in numbers.items()}


def network_from_document(document: Mapping[str, Any]) -> Network:
    """What `document` wrote. Raises KeyError, TypeError or ValueError for anything else."""
    inputs = Scaling(**{name: _read(name, document[name]) for name in SCALING})
    return Network(Layers(inputs, **{name: _read(name, document[name]) for name in LAYERS}))


def rounded(layers: Layers) -> Layers:
    """Round to the saved precision, so that a network is the same before and after saving."""
    return network_from_document(Network(layers).document()).layers


def _dtype(name: str) -> str:
    return "<f4" if name in SCALING else "<f2"


def _written(name: str, value: Any) -> object:
    return float(value) if name in SCALARS else written_array(np.asarray(value), _dtype(name))


def _read(name: str, written: Any) -> Any:
    return float(written) if name in SCALARS else read_array(written, _dtype(name), np.float32)


def written_array(array: NDArray[Any], dtype: str) -> object:
    """The JSON form: shape, and base64 of the numbers as `dtype`."""
    return [list(array.shape), base64.b64encode(array.astype(dtype).tobytes()).decode()]


def read_array(written: Any, dtype: str, wanted: type[S]) -> NDArray[S]:
    """What `written_array` wrote. Raises TypeError or ValueError for anything else."""
    shape, text = written
    return np.frombuffer(base64.b64decode(text), dtype).astype(wanted).reshape(shape)
