"""The part of a declaration that states and programs need."""

from collections.abc import Sequence
from functools import cached_property

from ansor.compat.auto_scheduler.operator_order import topological
from ansor.ir.access import producers
from ansor.ir.dag import Dag
from ansor.te.tensor import Tensor


class Declaration:
    """All tensors of a computation. `ops`: all of them, each after those it reads."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = list(tensors)
        self.dag = Dag(self.tensors)  # checks the declaration
        self.ops = topological(self.tensors)

    @cached_property
    def renamed(self) -> dict[int, Tensor]:
        """Id of a tensor of `ops` -> the same tensor under its name in programs."""
        found: dict[int, Tensor] = {}
        pairs = list(zip(self.tensors, self.dag.tensors, strict=True))
        while pairs:
            ours, theirs = pairs.pop()
            if id(ours) not in found:
                found[id(ours)] = theirs
                pairs += zip(producers(ours), producers(theirs), strict=True)
        return found
