"""`tensor[i][j]`: an element named one index at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from ansor.errors import DeclarationError
from ansor.te.expr import Expr, Operand
from ansor.te.operators import Operators

if TYPE_CHECKING:
    from ansor.te.tensor import Tensor


@dataclass(frozen=True, eq=False)
class TensorSlice(Operators[Expr]):
    """The part of a tensor at its first `indices`: of the remaining `shape`, to be indexed further."""

    tensor: Tensor
    indices: tuple[Operand, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the dimensions that have no index yet."""
        return self.tensor.shape[len(self.indices) :]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> str:
        return self.tensor.dtype

    def __getitem__(self, indices: Operand | tuple[Operand, ...]) -> Expr | TensorSlice:
        """The next index, or several."""
        return self.tensor[(*self.indices, *(indices if isinstance(indices, tuple) else (indices,)))]

    def __iter__(self) -> NoReturn:
        raise DeclarationError(f"{self} cannot be iterated over while declaring; index it: {self}[i]")

    def _apply(self, operation: str, left: object, right: object) -> Expr:
        self.refuse(f"for {operation}")

    def refuse(self, purpose: str = "for the value") -> NoReturn:
        """Raise what using a slice as an element says."""
        given = len(self.indices)
        raise DeclarationError(
            f"asked {purpose} of {self}, which has {given} {'index' if given == 1 else 'indices'}; tensor {self.tensor.name} of shape {self.tensor.shape} "
            f"has {self.tensor.ndim} dimensions: give one index for each"
        )

    def __str__(self) -> str:
        return f"{self.tensor.name}[{', '.join(map(str, self.indices))}]"
