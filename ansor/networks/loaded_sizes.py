"""Runs saved networks for several sizes of their inputs without PyTorch: NumPy arrays in, NumPy arrays out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ArgumentError
from ansor.graph.plan import PlacedArray, nest
from ansor.graph.spans import cut
from ansor.networks.loaded_network import LoadedNetwork, check_array, in_order, loaded, refuse_to_copy
from ansor.networks.saved_sizes import SavedSizes
from ansor.networks.size_arithmetic import batch_sizes, padded_array, size_for
from ansor.support.forked import Locked

Array = NDArray[np.generic]


class LoadedSizes(Locked, ABC):
    """Calls like the networks that were saved, with the arrays of their inputs in their order, or by name. Calls from several threads take turns.

    `sizes`: those of the networks, the smallest first; each is loaded on first use. `inputs`: those of the largest.
    """

    def __init__(self, saved: SavedSizes, place: Path) -> None:
        """place: the folder. Raises MeasureError if the largest network cannot be loaded."""
        super().__init__()
        self._saved, self._place = saved, place
        self._networks: dict[int, LoadedNetwork] = {}
        self.sizes = tuple(saved.networks)
        self.inputs: tuple[PlacedArray, ...] = saved.inputs
        self._network(self.sizes[-1])

    def __reduce__(self) -> NoReturn:
        refuse_to_copy()

    def __call__(self, *args: Array, **named: Array) -> object:
        """Raises ArgumentError or ArgumentTypeError, naming the input, for anything but arrays of the shapes and dtypes that the networks are for,
        OutOfRangeError, an IndexError, for indices outside the table that they look up, and MeasureError if a network cannot be loaded."""
        given = in_order(self.inputs, args, named)
        results = self._results(given, self._size(given))
        return nest(self._saved.networks[self.sizes[-1]].plan.results, results)

    @abstractmethod
    def _results(self, given: Sequence[Array], size: int) -> list[Array]:
        """The results, not nested, for inputs of a size."""

    def _network(self, size: int) -> LoadedNetwork:
        with self.lock:
            if size not in self._networks:
                self._networks[size] = loaded(self._saved.networks[size], self._place / str(size))
            return self._networks[size]

    def _size(self, given: Sequence[Array]) -> int:
        """The extent that all inputs which vary have in common."""
        found: dict[int, str] = {}
        for one, axis, array in zip(self.inputs, self._saved.varying, given, strict=True):
            check_array(one, array, axis)
            if axis is not None:
                found.setdefault(array.shape[axis], one.name)
        if len(found) > 1:
            told = " and ".join(f"{size} ({name})" for size, name in found.items())
            raise ArgumentError(f"the network was called with inputs of different sizes, {told}; give equal ones")
        return next(iter(found))


class LoadedLengths(LoadedSizes):
    """Networks for inputs of any length up to the largest. Calls are padded, and their results cut."""

    def __repr__(self) -> str:
        return f"LoadedLengths(lengths up to {self.sizes[-1]}; networks for {', '.join(map(str, self.sizes))})"

    def _results(self, given: Sequence[Array], size: int) -> list[Array]:
        if not 0 < size <= self.sizes[-1]:
            raise ArgumentError(f"the network was called with inputs of the length {size}; it takes 1 to {self.sizes[-1]}")
        padding = self._saved.paddings[size_for(size, self.sizes)]
        if size < padding.least:
            raise ArgumentError(f"the network was called with inputs of the length {size}, but the model needs at least {padding.least}")
        pairs = zip(given, self._saved.varying, strict=True)
        arrays = [array if axis is None else padded_array(array, axis, padding.length) for array, axis in pairs]
        results = self._network(padding.length).run([*arrays, np.asarray([size], np.int32)])
        return [cut(one, ends, padding.length, size) for one, ends in zip(results, padding.ends, strict=True)]


class LoadedBatches(LoadedSizes):
    """Networks for any number of rows. Calls are split."""

    def __repr__(self) -> str:
        return f"LoadedBatches(up to {self.sizes[-1]} rows at once)"

    def _results(self, given: Sequence[Array], size: int) -> list[Array]:
        if not size:
            raise ArgumentError("the network was called with 0 rows; give at least one")
        parts, first = [], 0
        for rows in batch_sizes(size, self.sizes[-1]):
            parts.append(self._network(rows).run([array[first : first + rows] for array in given]))
            first += rows
        return parts[0] if len(parts) == 1 else [np.concatenate(ones) for ones in zip(*parts, strict=True)]
