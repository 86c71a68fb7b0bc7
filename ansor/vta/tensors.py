"""Lays out arrays in the memory of a device: divides them into blocks, each of which is one element of a memory of the core.

    int8 [1, 40, 14, 14], the channels in blocks of 16      ->      elements [1, 3, 14, 14], each int8 [1, 16]; channels 40 to 47 are 0
    int32 [40], for elements of 2 rows                      ->      elements [3], each int32 [2, 16], both rows the same
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import Grouped
from ansor.errors import ArgumentError
from ansor.vta.configuration import Configuration, Memory

Bytes = NDArray[np.uint8]
Array = NDArray[np.generic]


@dataclass(frozen=True)
class TensorLayout:
    """memory: the memory of the core that holds the blocks as elements; shape: shape of the array; lanes: the dimensions that are divided, in their order in a
    block; blocks: the length of a block along each. Dimensions are numbered as in the array. Raises ArgumentError for a dimension that does not exist or is
    divided twice, and for fewer than 1 repeats.

    given: the shape in which callers pass the array, with the same numbers in the same order, () for `shape`; grouped: how constants are transformed first;
    repeats: how often an element repeats its block, more than once if elements have rows but the array has no dimension for them.
    """

    memory: Memory
    shape: tuple[int, ...]
    lanes: tuple[int, ...]
    blocks: tuple[int, ...]
    given: tuple[int, ...] = ()
    grouped: Grouped | None = None
    repeats: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.memory, Memory):
            raise ArgumentError(f"asked for elements of {self.memory!r:.80}; pass a Memory of ansor.vta.configuration, such as Memory.INP")
        if self.repeats < 1:
            raise ArgumentError(f"asked for elements that repeat their block {self.repeats} times; pass 1, or the rows of an element")
        if len(self.lanes) != len(self.blocks) or len(set(self.lanes)) != len(self.lanes) or not all(0 <= lane < len(self.shape) for lane in self.lanes):
            raise ArgumentError(f"asked to cut dimensions {self.lanes} of an array of shape {self.shape} into blocks of {self.blocks}: name each once")
        if min((*self.shape, *self.blocks), default=1) < 1:
            raise ArgumentError(f"asked to lay out an array of shape {self.shape} in blocks of {self.blocks}: each has to be at least 1")

    @property
    def array(self) -> tuple[int, ...]:
        """The shape in which callers pass the array."""
        return self.given or self.shape

    @cached_property
    def outer(self) -> tuple[int, ...]:
        """The number of blocks along each dimension."""
        sizes = dict(zip(self.lanes, self.blocks, strict=True))
        return tuple(-(-extent // sizes.get(dimension, 1)) for dimension, extent in enumerate(self.shape))

    @property
    def elements(self) -> int:
        """The number of blocks."""
        return prod(self.outer)

    def bytes(self, configuration: Configuration) -> int:
        """Bytes of the whole array on the device."""
        return self.elements * configuration.element_bytes(self.memory)

    def __str__(self) -> str:
        rows = [self.repeats] if self.repeats > 1 else []
        return f"{self.memory.name}{list(self.outer)} x {[*rows, *self.blocks]}"


def pack(array: Array, layout: TensorLayout) -> Bytes:
    """The bytes of an array on the device; blocks are 0 beyond its end. Raises ArgumentError for an array of another shape."""
    if array.shape != layout.array:
        raise ArgumentError(f"asked to lay out an array of shape {array.shape} as one of {layout.array}: pass that shape")
    array = (array if layout.grouped is None else layout.grouped.apply(array)).reshape(layout.shape)
    sizes = dict(zip(layout.lanes, layout.blocks, strict=True))
    room = [(0, -extent % sizes.get(dimension, 1)) for dimension, extent in enumerate(layout.shape)]
    cut = np.pad(array, room).reshape(_cut_shape(layout))
    blocks = np.ascontiguousarray(cut.transpose(_order(layout))).reshape(layout.elements, 1, -1)
    return np.repeat(blocks, layout.repeats, 1).reshape(-1).view(np.uint8)


def unpack(held: Bytes, layout: TensorLayout, dtype: str) -> Array:
    """The array from the bytes that `pack` returns. Raises ArgumentError for grouped constants, which are never read back."""
    if layout.grouped is not None:
        raise ArgumentError(f"asked to read back a grouped constant of shape {layout.array}: keep the array that was written")
    moved = [_cut_shape(layout)[place] for place in _order(layout)]
    once = held.view(dtype).reshape(layout.elements, layout.repeats, -1)[:, 0]
    cut = once.reshape(moved).transpose(np.argsort(_order(layout)))
    sizes = dict(zip(layout.lanes, layout.blocks, strict=True))
    whole = cut.reshape([count * sizes.get(dimension, 1) for dimension, count in enumerate(layout.outer)])
    return np.ascontiguousarray(whole[tuple(slice(extent) for extent in layout.shape)]).reshape(layout.array)


def _cut_shape(layout: TensorLayout) -> list[int]:
    """The shape with each dimension split into the number of blocks and the length of a block, which is 1 if the dimension is not divided."""
    sizes = dict(zip(layout.lanes, layout.blocks, strict=True))
    return [part for dimension, count in enumerate(layout.outer) for part in (count, sizes.get(dimension, 1))]


def _order(layout: TensorLayout) -> list[int]:
    """The order of the dimensions of `_cut_shape` on the device."""
    rank = len(layout.shape)
    ones = [2 * dimension + 1 for dimension in range(rank) if dimension not in layout.lanes]
    return [*(2 * dimension for dimension in range(rank)), *ones, *(2 * lane + 1 for lane in layout.lanes)]
