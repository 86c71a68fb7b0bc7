"""A small residual network for the log time of statement rows: what it is, and how it is written down. `fit_network` makes one."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.network_library import Layers, Outputs, outputs_of

SCALARS = ("last_bias", "limit")


@dataclass(frozen=True, eq=False)
class Network:
    """Called with rows [r, width], it gives what is added to the log time of each, [r]. The same bits for a row whatever stands beside it."""

    layers: Layers

    @cached_property
    def _outputs(self) -> Outputs:
        return outputs_of(self.layers)

    def __call__(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        return self._outputs(rows)

    def document(self) -> dict[str, object]:
        """As JSON: numbers of half precision as base64, but for means and scales, which have the range of the features."""
        return {one.name: _written(one.name, getattr(self.layers, one.name)) for one in fields(Layers)}


def network_from_document(document: Mapping[str, Any]) -> Network:
    """What `document` wrote. Raises KeyError, TypeError or ValueError for anything else."""
    return Network(Layers(**{one.name: _read(one.name, document[one.name]) for one in fields(Layers)}))


def rounded(layers: Layers) -> Layers:
    """With the precision that is written down, so that a network is the same before and after."""
    return network_from_document(Network(layers).document()).layers


def _dtype(name: str) -> str:
    return "<f4" if name in ("mean", "scale") else "<f2"


def _written(name: str, value: Any) -> object:
    if name in SCALARS:
        return float(value)
    array = np.asarray(value)
    return [list(array.shape), base64.b64encode(array.astype(_dtype(name)).tobytes()).decode()]


def _read(name: str, written: Any) -> Any:
    if name in SCALARS:
        return float(written)
    shape, text = written
    return np.frombuffer(base64.b64decode(text), _dtype(name)).astype(np.float32).reshape(shape)
