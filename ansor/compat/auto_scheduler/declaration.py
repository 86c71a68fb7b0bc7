"""What states and programs need to know about a declaration."""

from collections.abc import Sequence
from typing import Protocol

from ansor.ir.dag import Dag
from ansor.te.tensor import Tensor


class Declaration(Protocol):
    """All tensors of a computation: `ComputeDAG`."""

    tensors: list[Tensor]
    dag: Dag

    @property
    def ops(self) -> Sequence[Tensor]:
        """All tensors, each after those it reads."""
        ...

    @property
    def renamed(self) -> dict[int, Tensor]:
        """Id of a tensor of `ops` -> the same tensor under its name in programs."""
        ...
