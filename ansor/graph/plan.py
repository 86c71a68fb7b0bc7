"""A compiled network as data: which kernels to call, in which order, on which bytes. Reading, saving and running it needs no PyTorch.

A `NetworkPlan` has two blocks of memory. The arena has a place for everything that is computed; the constants are the weights in the layout that kernels
read. A call is the number of a kernel and the places of its arrays. A run copies the inputs into the arena, makes the calls in order, and copies the outputs
from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ansor.support.bfloat16 import make_known

ARENA, CONSTANTS = "arena", "constants"

Nested: TypeAlias = "Mapping[str, object]"
"""How results are nested: `{"array": 0}` is the first output, `{"value": 1}` is 1, and `tuple`, `list` and `dict` hold nested results."""


@dataclass(frozen=True)
class Place:
    """Bytes of the `arena`, or of the `constants`, that begin at `offset`."""

    memory: str
    offset: int


@dataclass(frozen=True)
class PlacedArray:
    """An input or output: contiguous, at its place."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    place: Place

    def __post_init__(self) -> None:
        make_known(self.dtype)


@dataclass(frozen=True)
class Check:
    """Before a call, `count` indices of `dtype` at `place` have to be from 0 to `rows` - 1. `name`: that of the look-up."""

    name: str
    dtype: str
    count: int
    place: Place
    rows: int


@dataclass(frozen=True)
class Call:
    """A run of kernel number `kernel` on arrays at `places`, after the checks."""

    kernel: int
    places: tuple[Place, ...]
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class PlannedKernel:
    """A function of the library: the kernel's name, its C name, and its number of threads; with more than one it takes a pool."""

    name: str
    entry: str
    threads: int


@dataclass(frozen=True)
class Room:
    """The size of each block of memory, in bytes. Kernels share one workspace."""

    arena: int
    workspace: int
    constants: int


@dataclass(frozen=True)
class NetworkPlan:
    """Everything that a run does. `results`: how the outputs are nested."""

    kernels: tuple[PlannedKernel, ...]
    calls: tuple[Call, ...]
    inputs: tuple[PlacedArray, ...]
    outputs: tuple[PlacedArray, ...]
    results: Nested
    room: Room

    @property
    def threads(self) -> int:
        """Threads of the pool that its kernels run on."""
        return max((kernel.threads for kernel in self.kernels), default=1)

    @property
    def checks(self) -> tuple[Check, ...]:
        """All checks, in the order in which they are made."""
        return tuple(check for call in self.calls for check in call.checks)


def out_of_range(name: str, indices: NDArray[np.generic], rows: int) -> str:
    """The error message for the first index that is out of range."""
    wrong = next(index for index in indices.flat if not 0 <= int(index) < rows)
    return f"{name} looks up row {wrong} of a table of {rows} rows; indices have to be from 0 to {rows - 1}"


def nest(results: Nested, arrays: Sequence[object]) -> object:
    """The outputs, nested as `results` says. Raises ValueError if `results` does not describe a nesting."""
    if len(results) != 1:
        raise ValueError(f"results are described by {len(results)} keys instead of one")
    (kind, held), *_ = results.items()
    if kind == "array" and isinstance(held, int):
        return arrays[held]
    if kind == "value":
        return held
    if kind == "dict" and isinstance(held, Mapping):
        return {key: nest(one, arrays) for key, one in held.items()}
    if kind in ("tuple", "list") and isinstance(held, Sequence):
        several = [nest(one, arrays) for one in held]
        return tuple(several) if kind == "tuple" else several
    raise ValueError(f"results are of the unknown kind {kind!r}")
