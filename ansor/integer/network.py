"""An integer network: operators on 8-bit tensors, in an order in which they can run.

Images are stored with their channels last ([N, H, W, C]), whatever layout the model has. A stored number q represents `scale * (q - zero_point)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from ansor.errors import ModelError
from ansor.integer.operators import Operator

CHANNELS_LAST = (0, 2, 3, 1)


@dataclass(frozen=True)
class Quantisation:
    """A stored number q represents `scale * (q - zero_point)`; zero_point is from -128 to 127."""

    scale: float
    zero_point: int

    def limits(self, low: float, high: float) -> tuple[int, int]:
        """The least and the greatest stored number for real values between `low` and `high`, either of which may be infinite."""
        ends = [max(-128.0, min(127.0, np.rint(end / self.scale) + self.zero_point)) for end in (low, high)]
        return int(ends[0]), int(ends[1])

    def quantised(self, values: NDArray[np.generic]) -> NDArray[np.int8]:
        """Real values as stored numbers, rounded to the nearest, halves to even."""
        found: NDArray[np.int8] = np.clip(np.rint(values.astype(np.float64) / self.scale) + self.zero_point, -128, 127).astype(np.int8)
        return found

    def real(self, stored: NDArray[np.int8]) -> NDArray[np.float64]:
        """The real numbers that stored numbers represent."""
        return self.scale * (stored.astype(np.float64) - self.zero_point)


@dataclass(frozen=True)
class IntegerTensor:
    """An int8 array of `shape`.

    axes: the order in which the model's dimensions are stored, () for the model's own; unsigned: whether the model has uint8 here, 128 more than is stored;
    dtype: dtype of the bytes in the arena, uint8 if kernels store them with 128 added.
    """

    name: str
    shape: tuple[int, ...]
    quantisation: Quantisation
    axes: tuple[int, ...] = ()
    unsigned: bool = False
    dtype: str = "int8"

    @property
    def size(self) -> int:
        """The number of elements, which is also the number of bytes."""
        return prod(self.shape)

    def stored(self, values: NDArray[np.generic]) -> NDArray[np.int8]:
        """Real values in the model's order of dimensions, as they are stored."""
        return np.ascontiguousarray(self.quantisation.quantised(np.transpose(values, self.axes) if self.axes else values))

    def read(self, stored: NDArray[np.int8]) -> NDArray[np.float64]:
        """The real values of stored numbers, in the model's order of dimensions."""
        return self.quantisation.real(np.transpose(stored, np.argsort(self.axes)) if self.axes else stored)


@dataclass(frozen=True, eq=False)
class IntegerNetwork:
    """inputs, outputs: names of tensors; operators: in an order in which they can run, each named after the tensor that it makes.

    left_out: operators after the outputs that are left to the caller, such as `softmax`.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, IntegerTensor]
    operators: tuple[Operator, ...]
    left_out: tuple[str, ...] = ()

    @cached_property
    def macs(self) -> int:
        """Multiplications of one run."""
        return sum(one.macs(self.tensors[one.output].shape) for one in self.operators)

    @property
    def constant_bytes(self) -> int:
        """Bytes of weights, biases, multipliers and tables, before packing."""
        return sum(array.nbytes for one in self.operators for array in one.constants.values())

    def checked(self) -> IntegerNetwork:
        """The network itself. Raises ModelError unless every tensor is made once, in its shape, before it is read."""
        known = set(self.inputs)
        for one in self.operators:
            missing = [name for name in one.inputs if name not in known]
            if missing or one.output in known:
                raise ModelError(f"the network {self.name} is broken at {one.output}: " + (f"{missing[0]} is not made yet" if missing else "it is made twice"))
            found = one.shape([self.tensors[name].shape for name in one.inputs])
            if found != self.tensors[one.output].shape:
                raise ModelError(f"the network {self.name} has {one.output} of shape {self.tensors[one.output].shape}, but its {one.kind} makes {found}")
            known.add(one.output)
        lost = [name for name in self.outputs if name not in known]
        if lost or not self.outputs:
            raise ModelError(f"the network {self.name} is broken: nothing makes its output {lost[0] if lost else ''}")
        return self

    def __str__(self) -> str:
        lines = [f"{name}: int8{list(self.tensors[name].shape)} = input" for name in self.inputs]
        lines += [f"{one.output}: int8{list(self.tensors[one.output].shape)} = {one}" for one in self.operators]
        return "\n".join([*lines, f"return {', '.join(self.outputs)}"])
