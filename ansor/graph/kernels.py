"""What a compiled network needs of a kernel, and the slow kernel that serves as an oracle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ansor.graph.ir import Array
from ansor.ir.evaluate import evaluate
from ansor.te.tensor import Tensor


class GroupKernel(Protocol):
    """One compiled task. `prepare` is called once for each place in the network, so all that can be done ahead of time belongs there."""

    @property
    def workspace_bytes(self) -> int:
        """Scratch memory that `prepare` needs, in bytes; kernels of one network share it, as they run one after another."""
        ...

    @property
    def packed(self) -> Collection[int]:
        """Numbers of the constants that `prepare` packs: of these it keeps nothing, and they may lie anywhere and in any order of memory."""
        ...

    def prepare(self, arrays: Sequence[Array], workspace: NDArray[np.uint8]) -> Callable[[], object]:
        """Returns a function that computes the outputs from the inputs, in place, each time it is called.

        `arrays`: C-contiguous, 64-byte aligned, one for each tensor of the task in its order. Constants hold their values now and never change: pack them
        here, and keep a reference to those that are used as they are. The others are memory that gets new values before each call, and stays there.
        """
        ...


class ReferenceKernel:
    """Runs a declaration with NumPy."""

    workspace_bytes = 0
    packed = ()

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = tuple(tensors)

    def prepare(self, arrays: Sequence[Array], workspace: NDArray[np.uint8]) -> Callable[[], object]:
        outputs = [tensor for tensor in self._tensors if not tensor.is_placeholder]
        held = list(zip(self._tensors, arrays, strict=True))
        targets = [array for tensor, array in held if not tensor.is_placeholder]

        def run() -> None:
            results = evaluate(outputs, {tensor: array for tensor, array in held if tensor.is_placeholder})
            for target, result in zip(targets, results, strict=True):
                np.copyto(target, result)

        return run
