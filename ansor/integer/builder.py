"""Builds integer networks for the readers of models: shapes go in with the model's order of dimensions ([N, C, H, W]), operators on stored tensors come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from ansor.errors import ModelError
from ansor.integer.network import CHANNELS_LAST, IntegerNetwork, IntegerTensor, Quantisation
from ansor.integer.operators import Operator, Reshape, Transpose
from ansor.integer.passes import improved


class Builder:
    """A network under construction. Mutable, and private to one reader. Tensors of four dimensions are stored with their channels last."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.inputs: list[str] = []
        self.tensors: dict[str, IntegerTensor] = {}
        self.operators: list[Operator] = []
        self.left_out: list[str] = []

    def input(self, name: str, shape: Sequence[int], quantisation: Quantisation, unsigned: bool = False) -> str:
        """Add an input of the network; returns its name. shape: in the model's order."""
        axes = CHANNELS_LAST if len(shape) == 4 else ()
        self.tensors[name] = IntegerTensor(name, tuple(shape[axis] for axis in axes) or tuple(shape), quantisation, axes, unsigned)
        self.inputs.append(name)
        return name

    def add(self, operator: Operator, quantisation: Quantisation) -> str:
        """Add an operator; returns the name of the tensor that it makes. Raises ModelError if the operator does not fit its inputs."""
        shapes = [self.tensors[name].shape for name in operator.inputs]
        shape = operator.shape(shapes)
        if not shape or min(shape) < 1:
            given = " and ".join(str(list(one)) for one in shapes)
            raise ModelError(f"asked for the {operator.kind} {operator.output} of {given}, which does not fit these shapes; check the model's shapes")
        self.tensors[operator.output] = IntegerTensor(operator.output, shape, quantisation, CHANNELS_LAST if len(shape) == 4 else ())
        self.operators.append(operator)
        return operator.output

    def quantisation(self, name: str) -> Quantisation:
        """The quantisation of a tensor."""
        return self.tensors[name].quantisation

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, in the model's order."""
        tensor = self.tensors[name]
        return tuple(tensor.shape[axis] for axis in np.argsort(tensor.axes)) if tensor.axes else tensor.shape

    def reshaped(self, name: str, shape: Sequence[int]) -> str:
        """Reshape a tensor; returns the name of the result. Both shapes, and the order of the elements, are the model's."""
        if prod(shape) != self.tensors[name].size:
            raise ModelError(f"asked to reshape {name} of shape {list(self.shape(name))} to {list(shape)}, which has a different number of elements")
        if tuple(shape) == self.shape(name):
            return name
        plain = self._moved(name, (0, 3, 1, 2)) if self.tensors[name].axes else name
        return self._stored(plain, tuple(shape))

    def _stored(self, name: str, shape: tuple[int, ...]) -> str:
        """Reshape a tensor that is stored in the model's order, and move the channels of an image last."""
        made = self._renamed(name, shape)
        return made if len(shape) != 4 else self._moved(made, CHANNELS_LAST)

    def _renamed(self, name: str, shape: tuple[int, ...]) -> str:
        return name if self.tensors[name].shape == shape else self._plain(Reshape(self._fresh(name, "reshape"), (name,), shape))

    def _moved(self, name: str, axes: tuple[int, ...]) -> str:
        shape = self.tensors[name].shape
        kept = [axis for axis in axes if shape[axis] != 1]
        if kept == sorted(kept):  # only dimensions of extent 1 move
            moved = self._renamed(name, tuple(shape[axis] for axis in axes))
        else:
            moved = self._plain(Transpose(self._fresh(name, "transpose"), (name,), axes))
        self.tensors[moved] = replace(self.tensors[moved], axes=CHANNELS_LAST if axes == CHANNELS_LAST else ())
        return moved

    def _plain(self, operator: Operator) -> str:
        name = self.add(operator, self.quantisation(operator.inputs[0]))
        self.tensors[name] = replace(self.tensors[name], axes=())
        return name

    def _fresh(self, name: str, word: str) -> str:
        found, count = f"{name}_{word}", 1
        while found in self.tensors:
            found, count = f"{name}_{word}_{count}", count + 1
        return found

    def network(self, outputs: Sequence[str]) -> IntegerNetwork:
        """The network after all passes, without anything that no output needs. Raises ModelError if it is not consistent."""
        made = IntegerNetwork(self.name, tuple(self.inputs), tuple(outputs), dict(self.tensors), tuple(self.operators), tuple(self.left_out))
        return improved(made).checked()


