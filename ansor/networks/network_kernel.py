"""Kernels of the groups of a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.source import Argument, CSource
from ansor.errors import ModelError
from ansor.graph.network_memory import NetworkMemory
from ansor.measure.kernel import Kernel

Array = NDArray[np.generic]


class Text(Protocol):
    """What a plan needs from a kernel: its name for display, and its C."""

    @property
    def name(self) -> str: ...

    @property
    def code(self) -> CSource: ...


@dataclass(frozen=True, eq=False)
class PreparedCall:
    """A kernel with the memory that it reads and writes; constants among the arrays are packed in its layout.

    function, workspace: addresses of its entry point, 0 if it cannot be called, and of its scratch memory.
    """

    kernel: Text
    arrays: tuple[Array, ...]
    run: Callable[[], None]
    function: int = 0
    workspace: int = 0

    def __call__(self) -> None:
        self.run()


class NetworkKernel:
    """A built kernel as `ansor.graph.kernels.GroupKernel`: packs constants once, then each call is one call into C."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.workspace_bytes = kernel.code.workspace_bytes
        self.packed = _packed(kernel.code)

    def prepare(self, arrays: Sequence[Array], memory: NetworkMemory, like: Callable[[], object] | None = None) -> PreparedCall:
        """See `GroupKernel.prepare`."""
        used = _arrays(self.kernel.code, arrays, memory, like)
        addresses = [array.ctypes.data for array in used]
        place = memory.workspace.ctypes.data
        return PreparedCall(self.kernel, used, self.kernel.prepared(addresses, place, (memory.workspace, *used)), self.kernel.address, place)


@dataclass(frozen=True, eq=False)
class WrittenKernel:
    """A kernel that is only C text, for plans of networks that run elsewhere. Its calls can be planned, but not made."""

    name: str
    code: CSource

    @property
    def workspace_bytes(self) -> int:
        """See `GroupKernel.workspace_bytes`."""
        return self.code.workspace_bytes

    @property
    def packed(self) -> frozenset[int]:
        """See `GroupKernel.packed`."""
        return _packed(self.code)

    def prepare(self, arrays: Sequence[Array], memory: NetworkMemory, like: Callable[[], object] | None = None) -> PreparedCall:
        """See `GroupKernel.prepare`."""
        return PreparedCall(self, _arrays(self.code, arrays, memory, like), self._refuse)

    def _refuse(self) -> NoReturn:
        raise ModelError(f"asked to run {self.name}, which was only written as C; build the exported files")


def _packed(code: CSource) -> frozenset[int]:
    return frozenset(number for number, argument in enumerate(code.arguments) if not argument.as_given)


def _arrays(code: CSource, arrays: Sequence[Array], memory: NetworkMemory, like: Callable[[], object] | None) -> tuple[Array, ...]:
    """The arrays that a kernel gets: packed constants in its layout, in memory of their own, or in that of another call of the kernel."""
    packed = like.arrays if isinstance(like, PreparedCall) else [None] * len(arrays)
    rows = zip(code.arguments, arrays, packed, strict=True)
    return tuple(array if argument.as_given else _physical(argument, array, memory) if known is None else known for argument, array, known in rows)


def _physical(argument: Argument, array: Array, memory: NetworkMemory) -> Array:
    return memory.constant((argument.physical_size,), argument.physical_dtype, partial(argument.put_physical, array))
