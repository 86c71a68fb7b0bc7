"""What computes a tensor, under the names that schedules written by hand use: `C.op`, `C.op.axis`, `C.op.reduce_axis`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ansor.errors import DeclarationError
from ansor.te.expr import Axis, Expr

if TYPE_CHECKING:
    from ansor.te.tensor import Tensor


@dataclass(frozen=True)
class Operation:
    """How `tensor` comes about. Two operations are equal when their tensor is the same one."""

    tensor: Tensor

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def tag(self) -> str:
        return self.tensor.tag

    @property
    def attrs(self) -> Mapping[str, object]:
        """Attributes of the declaration."""
        return self.tensor.attrs

    @property
    def axis(self) -> tuple[Axis, ...]:
        """One axis for each dimension; none for a placeholder."""
        return self.tensor.compute.axes if self.tensor.compute else ()

    @property
    def reduce_axis(self) -> tuple[Axis, ...]:
        """The axes that are reduced over."""
        return self.tensor.compute.reduce_axes if self.tensor.compute else ()

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that are read, each once, in order of first reading."""
        reads = self.tensor.compute.reads if self.tensor.compute else ()
        return tuple({id(read.tensor): read.tensor for read in reads}.values())

    @property
    def body(self) -> tuple[Expr, ...]:
        """What an element is, as the only member of a tuple; nothing for a placeholder."""
        return (self.tensor.compute.body,) if self.tensor.compute else ()

    @property
    def num_outputs(self) -> int:
        """One."""
        return 1

    def output(self, index: int) -> Tensor:
        """The tensor. Raises DeclarationError for another index than 0."""
        if index != 0:
            raise DeclarationError(f"asked for output {index} of {self.name}; an operation has one output, number 0")
        return self.tensor
