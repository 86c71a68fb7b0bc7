"""bfloat16 in NumPy: the upper half of a float32, as `ml_dtypes` defines it.

NumPy knows the name once that package is loaded, which happens when something of this dtype is first declared or described.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

BFLOAT16 = "bfloat16"
EPSILON = 2.0**-7
"""The distance from 1 to the next larger number."""


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether a NumPy dtype is a floating-point type. `dtype.kind` does not tell for bfloat16."""
    return dtype.kind == "f" or dtype.name == BFLOAT16


def make_known(dtype: object) -> None:
    """Register the name with NumPy if `dtype` is bfloat16."""
    if dtype == BFLOAT16:
        import ml_dtypes  # noqa: F401  # loading it is what registers the name


def dtype_named(name: str) -> np.dtype[Any]:
    """The NumPy dtype with this name, including bfloat16."""
    make_known(name)
    return np.dtype(name)


def bits_of(value: float) -> int:
    """The nearest bfloat16 (ties to even), as an unsigned 16-bit number."""
    make_known(BFLOAT16)
    with np.errstate(over="ignore"):  # numbers beyond the range become infinite
        return int(np.asarray(np.float32(value)).astype(BFLOAT16).view(np.uint16))


def holds(value: float) -> bool:
    """Whether bfloat16 can represent a number exactly."""
    return float(np.array(bits_of(value) << 16, np.uint32).view(np.float32)) == value


def array_of(tensor: torch.Tensor) -> NDArray[np.generic]:
    """A dense tensor's memory as an array. Raises what `tensor.numpy` raises if NumPy has no such dtype."""
    import torch

    if tensor.dtype is not torch.bfloat16:
        plain: NDArray[np.generic] = tensor.numpy()
        return plain
    make_known(BFLOAT16)
    return tensor.view(torch.int16).numpy().view(BFLOAT16)


def tensor_of(array: NDArray[np.generic]) -> torch.Tensor:
    """An array's memory as a tensor."""
    import torch

    return torch.from_numpy(array) if array.dtype.name != BFLOAT16 else torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
