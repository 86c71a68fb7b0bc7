"""The kernel of a group in a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.measure.kernel import Kernel
from ansor.measure.result_memory import aligned_empty

Array = NDArray[np.generic]


class NetworkKernel:
    """A built kernel as `ansor.graph.kernels.GroupKernel`: packs constants once, then each call is one call into C."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.workspace_bytes = kernel.code.workspace_bytes

    def prepare(self, arrays: Sequence[Array], workspace: NDArray[np.uint8]) -> Callable[[], object]:
        """See `GroupKernel.prepare`."""
        held: list[Array] = [workspace]
        addresses = []
        for argument, array in zip(self.kernel.arguments, arrays, strict=True):
            if not argument.as_given:
                array = _aligned(argument.physical(array))
            held.append(array)
            addresses.append(array.ctypes.data)
        return self.kernel.prepared(addresses, workspace.ctypes.data, held)


def _aligned(array: Array) -> Array:
    copy = aligned_empty(array.shape, array.dtype.name)
    copy[...] = array
    return copy
