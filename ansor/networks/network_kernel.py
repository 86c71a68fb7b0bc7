"""The kernel of a group in a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ansor.measure.kernel import Kernel
from ansor.measure.result_memory import aligned_empty

Array = NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class PreparedCall:
    """A kernel with the memory that it reads and writes; constants among the arrays are packed as it wants them."""

    kernel: Kernel
    arrays: tuple[Array, ...]
    run: Callable[[], None]

    def __call__(self) -> None:
        self.run()


class NetworkKernel:
    """A built kernel as `ansor.graph.kernels.GroupKernel`: packs constants once, then each call is one call into C."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.workspace_bytes = kernel.code.workspace_bytes

    def prepare(self, arrays: Sequence[Array], workspace: NDArray[np.uint8]) -> PreparedCall:
        """See `GroupKernel.prepare`."""
        used = tuple(
            array if argument.as_given else _aligned(argument.physical(array)) for argument, array in zip(self.kernel.arguments, arrays, strict=True)
        )
        addresses = [array.ctypes.data for array in used]
        return PreparedCall(self.kernel, used, self.kernel.prepared(addresses, workspace.ctypes.data, (workspace, *used)))


def _aligned(array: Array) -> Array:
    copy = aligned_empty(array.shape, array.dtype.name)
    copy[...] = array
    return copy
