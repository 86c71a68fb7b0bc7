"""What code generation hands on: one C translation unit, its entry point and the buffers it expects.

`ansor.codegen` makes a `CSource`; `ansor.measure` builds, runs and times it, and a `Kernel` calls it. The entry point is

    void ENTRY(void *const *args, unsigned char *workspace, ansor_parallel_for parallel_for, void *pool)

with `args` in the order of `CSource.arguments`, every buffer C-contiguous and aligned to `ALIGNMENT` bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

ALIGNMENT = 64  # bytes: one cache line, and the widest vector we generate
DTYPES = ("float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool")
ROLES = ("input", "constant", "output")


@dataclass(frozen=True, slots=True)
class Pack:
    """A physical order of an array: a nest of loops whose every position names one logical element.

    `extents[l]` is the extent of physical loop l, outermost first; `strides[d][l]` is how far one step of loop l moves
    the logical index of dimension d (0 if it does not). Positions beyond the logical shape hold zero.

        a [512, 100] matrix b[k, j] as panels of 16 columns, b_packed[j // 16, k, j % 16]:
            Pack(extents=(7, 512, 16), strides=((0, 1, 0), (16, 0, 1)))
    """

    extents: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if any(extent < 1 for extent in self.extents):
            raise ValueError(f"Pack: every extent must be 1 or more, found {self.extents}")
        for dimension, row in enumerate(self.strides):
            if len(row) != len(self.extents) or any(stride < 0 for stride in row):
                raise ValueError(
                    f"Pack: dimension {dimension} needs {len(self.extents)} strides of 0 or more, one for each loop of "
                    f"extents {self.extents}; found {row}"
                )

    @property
    def size(self) -> int:
        """Elements of the physical buffer."""
        return prod(self.extents)

    def apply(self, array: NDArray[np.generic]) -> NDArray[np.generic]:
        """The physical buffer, 1-D and contiguous, of a logical array; raises ValueError when the rank differs."""
        if array.ndim != len(self.strides):
            raise ValueError(f"Pack.apply: this order is for {len(self.strides)} dimensions, found shape {array.shape}")
        reached = [1 + sum((extent - 1) * stride for extent, stride in zip(self.extents, row, strict=True))
                   for row in self.strides]  # fmt: skip
        if any(need > have for need, have in zip(reached, array.shape, strict=True)):
            # Zeros where the loops leave the logical shape; a plain strided view serves afterwards.
            array = np.pad(array, [(0, max(0, need - have)) for need, have in zip(reached, array.shape, strict=True)])
        steps = [sum(row[loop] * step for row, step in zip(self.strides, array.strides, strict=True))
                 for loop in range(len(self.extents))]  # fmt: skip
        view = np.lib.stride_tricks.as_strided(array, shape=self.extents, strides=steps, writeable=False)
        return np.array(view, order="C").reshape(-1)


class PackData(TypedDict):
    """`Pack` as JSON."""

    extents: Sequence[int]
    strides: Sequence[Sequence[int]]


class ArgumentData(TypedDict):
    """`Argument` as JSON."""

    name: str
    shape: Sequence[int]
    dtype: str
    role: str
    pack: PackData | None


@dataclass(frozen=True, slots=True)
class Argument:
    """One buffer of an entry point: its logical shape as declared, and its physical order when packed ahead of time."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: str
    pack: Pack | None = None

    @property
    def physical_size(self) -> int:
        """Elements of the buffer the C code gets."""
        return prod(self.shape) if self.pack is None else self.pack.size

    def physical(self, array: NDArray[np.generic]) -> NDArray[np.generic]:
        """The 1-D contiguous buffer the C code gets for a logical array of this argument's shape."""
        return np.ascontiguousarray(array).reshape(-1) if self.pack is None else self.pack.apply(array)

    def to_data(self) -> ArgumentData:
        """JSON of this argument; `from_data` reads it back."""
        pack: PackData | None = None
        if self.pack is not None:
            pack = {"extents": self.pack.extents, "strides": self.pack.strides}
        return {"name": self.name, "shape": self.shape, "dtype": self.dtype, "role": self.role, "pack": pack}

    @staticmethod
    def from_data(data: ArgumentData) -> "Argument":
        """The argument that `to_data` wrote."""
        pack = None
        if data["pack"] is not None:
            pack = Pack(tuple(data["pack"]["extents"]), tuple(tuple(row) for row in data["pack"]["strides"]))
        return Argument(data["name"], tuple(data["shape"]), data["dtype"], data["role"], pack)


@dataclass(frozen=True, slots=True)
class CSource:
    """A complete C99 translation unit (GNU vector extensions, no main) and how to call it."""

    text: str
    entry: str
    arguments: tuple[Argument, ...]
    workspace_bytes: int = 0
    threads: int = 1  # 1: never calls parallel_for
