"""`tvm.nd`: arrays that functions read and write."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from numpy.typing import NDArray as NumpyArray

from ansor.compat.tvm.device import Device, there
from ansor.measure.result_memory import aligned_empty

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Array = NumpyArray[np.generic]
Index: TypeAlias = SupportsIndex | slice | EllipsisType | None


class NDArray:
    """An array in memory, which programs use without a copy. Create one with `array` or `empty`."""

    def __init__(self, values: Array, device: Device) -> None:
        self._values = values
        self.device = device

    @property
    def shape(self) -> tuple[int, ...]:
        return self._values.shape

    @property
    def dtype(self) -> str:
        return str(self._values.dtype)

    def numpy(self) -> Array:
        """A copy of the values, as in TVM."""
        return self._values.copy()

    asnumpy = numpy

    def copyfrom(self, source: ArrayLike | NDArray) -> NDArray:
        """Overwrite the values with others of this shape. Raises ValueError for another shape."""
        values = source._values if isinstance(source, NDArray) else np.asarray(source)
        if values.shape != self.shape:
            raise ValueError(f"asked to copy values of shape {values.shape} into an array of shape {self.shape}; give values of the array's shape")
        self._values[...] = values.astype(self._values.dtype, copy=False)
        return self

    def copyto(self, target: NDArray | Device) -> NDArray:
        """Copy the values into another array, or into a new one on a device."""
        return array(self._values, target) if isinstance(target, Device) else target.copyfrom(self)

    @property
    def memory(self) -> Array:
        """The values, without a copy."""
        return self._values

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self._values, dtype=dtype)

    def __getitem__(self, index: Index | tuple[Index, ...]) -> Array:
        return np.asarray(self._values[index])

    def __setitem__(self, index: Index | tuple[Index, ...], value: ArrayLike) -> None:
        self._values[index] = np.asarray(value)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<NDArray shape={self.shape}, {self.device}>\n{self._values!r}"


def array(arr: ArrayLike | NDArray, device: Device | None = None) -> NDArray:
    """A copy of these values."""
    values = np.asarray(arr)
    memory = aligned_empty(values.shape, values.dtype.name)
    memory[...] = values
    return NDArray(memory, there(device))


def empty(shape: Sequence[int] | int, dtype: str = "float32", device: Device | None = None) -> NDArray:
    """An uninitialised array."""
    return NDArray(aligned_empty((shape,) if isinstance(shape, int) else tuple(shape), dtype), there(device))
