"""A call that runs in PyTorch: an ATen operator with its arguments, and slots for the arrays among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from ansor.errors import ModelError


@dataclass(frozen=True)
class Slot:
    """Stands for the node's input number `index` among the arguments."""

    index: int


@dataclass(frozen=True, eq=False)
class Held:
    """A constant among the arguments that NumPy cannot hold."""

    tensor: torch.Tensor


@dataclass(frozen=True)
class TorchCall:
    """`operator` is spelled `namespace.name.overload`; lists are tuples, so that calls compare and hash by value.

    `site` distinguishes two calls that are otherwise equal. All results of one call share it, and the call is made once.
    """

    site: str
    operator: str
    arguments: tuple[object, ...]
    keywords: tuple[tuple[str, object], ...] = ()

    def function(self) -> Callable[..., object]:
        """The operator itself. Raises ModelError if this PyTorch does not have it."""
        found: object = torch.ops
        for part in self.operator.split("."):
            found = getattr(found, part, None)
        if not callable(found):
            raise ModelError(f"the network calls the PyTorch operator {self.operator}, which this PyTorch ({torch.__version__}) does not have")
        return found

    def __call__(self, tensors: Sequence[torch.Tensor]) -> tuple[object, ...]:
        """Run the operator; always returns a tuple of results, with the lists among them flattened."""
        arguments = [_filled(one, tensors) for one in self.arguments]
        result = self.function()(*arguments, **{key: _filled(one, tensors) for key, one in self.keywords})
        return tuple(_laid_out(result))

    def __str__(self) -> str:
        return self.operator


def _laid_out(result: object) -> list[object]:
    return [leaf for one in result for leaf in _laid_out(one)] if isinstance(result, (tuple, list)) else [result]


def _filled(argument: object, tensors: Sequence[torch.Tensor]) -> object:
    if isinstance(argument, Slot):
        return tensors[argument.index]
    if isinstance(argument, Held):
        return argument.tensor
    if isinstance(argument, tuple):
        return [_filled(one, tensors) for one in argument]
    return argument
