"""One operator with its operands, as passed to a translation, and the table of translations.

A translation is a function registered for the operators that it computes with PyTorch:

    @computes("Relu")
    def relu(call: Call) -> torch.Tensor: ...

It returns the result, or a tuple of results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ansor.errors import ModelError
from ansor.onnx.model_file import Array, Node

Operand = torch.Tensor | Array | None
Result = torch.Tensor | Array | tuple[torch.Tensor, ...]
Translation = Callable[["Call"], Result]
TABLE: dict[str, Translation] = {}


def computes(*operators: str) -> Callable[[Translation], Translation]:
    """Register a translation."""

    def register(function: Translation) -> Translation:
        for operator in operators:
            assert operator not in TABLE, operator
            TABLE[operator] = function
        return function

    return register


@dataclass(frozen=True, eq=False)
class Call:
    """operands: tensors, which each call of the network computes, or arrays, which are known in advance; None for a missing operand."""

    node: Node
    operands: Sequence[Operand]
    opset: int

    def has(self, place: int) -> bool:
        """Whether an operand is present."""
        return place < len(self.operands) and self.operands[place] is not None

    def tensor(self, place: int = 0) -> torch.Tensor:
        """An operand."""
        value = self.operands[place] if self.has(place) else None
        if value is None:
            raise ModelError(f"the {self.node} has no operand number {place}, which it needs; export the model again")
        return value if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value, copy=True))

    def tensors(self) -> list[torch.Tensor]:
        """All operands."""
        return [self.tensor(place) for place in range(len(self.operands))]

    def optional(self, place: int) -> torch.Tensor | None:
        return self.tensor(place) if self.has(place) else None

    def array(self, place: int) -> Array:
        """An operand that must be known when the model is read."""
        value = self.operands[place] if self.has(place) else None
        if not isinstance(value, np.ndarray):
            name = self.node.inputs[place] if self.has(place) else f"operand number {place}"
            raise ModelError(f"the {self.node} reads {name}, which has to be a constant: shapes of networks are fixed")
        return value

    def integers(self, place: int, name: str = "") -> list[int] | None:
        """A list of integers: an operand or, in older versions, the attribute `name`; None if missing."""
        if self.has(place):
            return [int(one) for one in self.array(place).reshape(-1)]
        value = self.node.attributes.get(name)
        if value is None:
            return None
        return [int(one) for one in value] if isinstance(value, (list, tuple)) else [int(self.number(name, 0))]

    def listed(self, name: str, default: Sequence[int]) -> list[int]:
        """An attribute that is a list of integers."""
        value = self.node.attributes.get(name, default)
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise ModelError(f"the {self.node} of the model has {name}={value!r:.60}, which has to be a list of integers; export the model again")
        return [int(one) for one in value]

    def number(self, name: str, default: float) -> float:
        """An attribute that is a number."""
        value = self.node.attributes.get(name, default)
        if not isinstance(value, (int, float)):
            raise ModelError(f"the {self.node} of the model has {name}={value!r:.60}, which has to be a number; export the model again")
        return value

    def integer(self, name: str, default: int) -> int:
        return int(self.number(name, default))

    def text(self, name: str, default: str) -> str:
        return str(self.node.attributes.get(name, default))

    def word(self, name: str, *words: str) -> str:
        """An attribute that is one of these words, the first by default."""
        value = self.text(name, words[0])
        if value not in words:
            raise ModelError(f"the {self.node} of the model has {name}={value:.60}, which has to be one of {', '.join(words)}; export the model again")
        return value

    def axis(self, default: int, rank: int, name: str = "axis") -> int:
        """An attribute that names one of `rank` dimensions, as a number from 0."""
        return self.within(self.integer(name, default), rank)

    def within(self, axis: int, rank: int) -> int:
        """A dimension as a number from 0."""
        if not -rank <= axis < rank:
            raise ModelError(f"the {self.node} of the model has the dimension {axis}, which has to be from {-rank} to {rank - 1}; export the model again")
        return axis % rank

    def refused(self, what: str) -> ModelError:
        """The error for an unsupported form of the operator."""
        return ModelError(f"the {self.node} of the model has {what}, which is not supported; remove it, or run that part outside of the network")
