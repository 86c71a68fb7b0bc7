"""The interface between a compiled network and its kernels, and a slow kernel that serves as an oracle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import numpy as np

from ansor.graph.ir import Array
from ansor.graph.network_memory import NetworkMemory
from ansor.ir.evaluate import evaluate
from ansor.te.tensor import Tensor


class GroupKernel(Protocol):
    """One compiled task. `prepare` is called when the network is made, so all work that can be done ahead of time belongs there."""

    @property
    def workspace_bytes(self) -> int:
        """The scratch memory that `prepare` needs, in bytes. Kernels of one network share it, because they run one after another."""
        ...

    @property
    def packed(self) -> Collection[int]:
        """The numbers of the constants that `prepare` packs. It keeps no reference to them; they may have any address and any memory order."""
        ...

    def prepare(self, arrays: Sequence[Array], memory: NetworkMemory, like: Callable[[], object] | None = None) -> Callable[[], object]:
        """Returns a function that computes the outputs from the inputs, in place, each time it is called.

        `arrays`: one for each tensor of the task, in its order; all but `packed` ones are C-contiguous and 64-byte aligned. Constants hold their values now
        and never change: pack them here, and keep a reference to those that are used as they are. The other arrays get new values before each call, and keep
        their addresses. `memory`: holds the scratch memory, and gives memory for packed constants. `like`: what this kernel returned for the same constants at
        `packed`, whose packed forms it shares; None the first time.
        """
        ...


class ReferenceKernel:
    """Runs a declaration with NumPy."""

    workspace_bytes = 0
    packed = ()

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._tensors = tuple(tensors)

    def prepare(self, arrays: Sequence[Array], memory: NetworkMemory, like: Callable[[], object] | None = None) -> Callable[[], object]:
        outputs = [tensor for tensor in self._tensors if not tensor.is_placeholder]
        held = list(zip(self._tensors, arrays, strict=True))
        targets = [array for tensor, array in held if not tensor.is_placeholder]

        def run() -> None:
            results = evaluate(outputs, {tensor: array for tensor, array in held if tensor.is_placeholder})
            for target, result in zip(targets, results, strict=True):
                np.copyto(target, result)

        return run
