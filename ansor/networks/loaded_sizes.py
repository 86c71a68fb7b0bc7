"""Runs saved networks for several sizes of their inputs without PyTorch: NumPy arrays in, NumPy arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ArgumentError, ArgumentTypeError, ModelError
from ansor.graph.plan import PlacedArray, nest
from ansor.graph.spans import Padding, before
from ansor.networks.loaded_network import LoadedNetwork, in_order
from ansor.networks.sizes import all_batch_sizes, batch_sizes, padded_array, size_for

Array = NDArray[np.generic]


class LoadedSizes:
    """Calls like the networks that were saved, with the arrays of their inputs in their order, or by name.

    `networks`: by size; `inputs`: those of the largest.
    """

    def __init__(self, networks: Mapping[int, LoadedNetwork], axes: Sequence[int | None]) -> None:
        """axes: the dimension of each input that varies, None for fixed ones. Raises ValueError if the networks do not belong together."""
        self.networks = dict(sorted(networks.items()))
        self.sizes = tuple(self.networks)
        self.inputs: tuple[PlacedArray, ...] = self.networks[self.sizes[-1]].plan.inputs[: len(axes)]
        self._axes = tuple(axes)
        if len(self.inputs) != len(axes) or any(axis is not None and axis >= len(one.shape) for one, axis in zip(self.inputs, axes, strict=True)):
            raise ValueError("its inputs have other dimensions than its networks")
        plans = [one.plan for one in self.networks.values()]
        if any(one.results != other.results or [each.name for each in one.inputs] != [each.name for each in other.inputs] for one, other in pairwise(plans)):
            raise ValueError("its networks take or return something else for other sizes")

    def __reduce__(self) -> NoReturn:
        raise ModelError("asked to copy or pickle a loaded network, which is bound to memory of this process; load it again where it is needed")

    def __call__(self, *args: Array, **named: Array) -> object:
        """Raises ArgumentError or ArgumentTypeError, naming the input, for anything but arrays of the shapes and dtypes that the networks are for, and
        OutOfRangeError, an IndexError, for indices outside the table that they look up."""
        given = in_order(self.inputs, args, named)
        results = self._results(given, self._size(given))
        return nest(self.networks[self.sizes[-1]].plan.results, results)

    def _results(self, given: Sequence[Array], size: int) -> list[Array]:
        raise NotImplementedError

    def _size(self, given: Sequence[Array]) -> int:
        """The extent that all inputs which vary have in common."""
        found: dict[int, str] = {}
        for one, axis, array in zip(self.inputs, self._axes, given, strict=True):
            if axis is None:
                continue
            shape = _shape(one, array)
            if len(shape) != len(one.shape) or (*shape[:axis], one.shape[axis], *shape[axis + 1 :]) != one.shape:
                wanted = ", ".join("any" if place == axis else str(extent) for place, extent in enumerate(one.shape))
                raise ArgumentError(f"{one.name} is an array of shape {shape}; the network takes ({wanted})")
            found.setdefault(shape[axis], one.name)
        if len(found) > 1:
            told = " and ".join(f"{size} ({name})" for size, name in found.items())
            raise ArgumentError(f"the network was called with inputs of different sizes, {told}; give equal ones")
        return next(iter(found))


class LoadedLengths(LoadedSizes):
    """Networks for inputs of any length up to the largest. Calls are padded, and their results cut."""

    def __init__(self, networks: Mapping[int, LoadedNetwork], axes: Sequence[int | None], paddings: Mapping[int, Padding]) -> None:
        super().__init__(networks, axes)
        self._paddings = paddings
        if all(axis is None for axis in axes) or any(len(paddings[size].ends) != len(one.plan.outputs) for size, one in self.networks.items()):
            raise ValueError("its results have other dimensions than its networks")

    def __repr__(self) -> str:
        return f"LoadedLengths(lengths up to {self.sizes[-1]}; networks for {', '.join(map(str, self.sizes))})"

    def _results(self, given: Sequence[Array], size: int) -> list[Array]:
        largest = self.sizes[-1]
        if not 0 < size <= largest:
            raise ArgumentError(f"the network was called with inputs of the length {size}; it takes 1 to {largest}")
        padded = size_for(size, self.sizes)
        padding = self._paddings[padded]
        if size < padding.least:
            raise ArgumentError(f"the network was called with inputs of the length {size}, but the model needs at least {padding.least}")
        arrays = [array if axis is None else padded_array(array, axis, padded) for array, axis in zip(given, self._axes, strict=True)]
        results = self.networks[padded].run([*arrays, np.asarray([size], np.int32)])
        return [np.ascontiguousarray(before(one, ends or (), padded, size)) for one, ends in zip(results, padding.ends, strict=True)]


class LoadedBatches(LoadedSizes):
    """Networks for any number of rows. Calls are split."""

    def __init__(self, networks: Mapping[int, LoadedNetwork]) -> None:
        super().__init__(networks, [0] * len(networks[max(networks)].plan.inputs))
        if self.sizes != all_batch_sizes(self.sizes[-1]) or not self.inputs:
            raise ValueError(f"networks for {', '.join(map(str, self.sizes))} rows do not make up all numbers of rows")

    def __repr__(self) -> str:
        return f"LoadedBatches(up to {self.sizes[-1]} rows at once)"

    def _results(self, given: Sequence[Array], size: int) -> list[Array]:
        if not size:
            raise ArgumentError("the network was called with 0 rows; give at least one")
        parts, first = [], 0
        for rows in batch_sizes(size, self.sizes[-1]):
            parts.append(self.networks[rows].run([np.ascontiguousarray(array[first : first + rows]) for array in given]))
            first += rows
        return parts[0] if len(parts) == 1 else [np.concatenate(ones) for ones in zip(*parts, strict=True)]


def _shape(one: PlacedArray, array: object) -> tuple[int, ...]:
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(f"{one.name} is a {type(array).__name__}; the network takes {one.dtype}, as a NumPy array without a mask")
    return tuple(array.shape)
