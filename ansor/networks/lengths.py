"""A network for inputs of any length: calls are padded to one of a few lengths, for each of which a network is compiled on first use.

A network gets the true length and keeps what lies beyond it out of the results (`ansor.graph.lengths`). With examples of 128 words, a call with 70 is computed
as 80.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import index
from pathlib import Path

import torch

from ansor.errors import ModelError
from ansor.graph.any_length import Calls
from ansor.graph.call_shape import arranged
from ansor.graph.export import CallArguments, ExampleInputs, parameters_of, split_inputs
from ansor.graph.lengths import NotForAnyLength
from ansor.graph.network import CompiledNetwork
from ansor.networks.model_runs import Leaf, Leaves, alike, evaluating, flat, nested, results
from ansor.networks.padded import PaddedNetwork, lengths_to_try, lengths_up_to, others_of, padded_or_cut
from ansor.networks.saving import save_sizes
from ansor.networks.size_arithmetic import size_for
from ansor.networks.sized import SizedNetworks
from ansor.support.text import first_line

Dimension = int | Mapping[str, int]
"""The dimension that has any extent: of all inputs, or of some by their names."""

Compiled = Callable[[object, Calls], PaddedNetwork]
"""Reads and compiles a model for one length."""


class AnyLengthNetwork(SizedNetworks[PaddedNetwork]):
    """Calls like the module, with inputs of any length up to that of the example inputs. `lengths`: those that calls are padded to."""

    MADE_BY, SIZE = "compile_lengths", "the length {}"

    def __init__(self, model: object, example_inputs: ExampleInputs, compiled: Compiled, dimension: Dimension, lengths: Sequence[int] | None = None) -> None:
        """compiled: what compiles a network for one length; dimension, lengths: as in `compile_lengths`.

        Raises ModelError for inputs without such a dimension, and for a model whose results for shorter inputs do not follow from its graph."""
        if not isinstance(model, torch.nn.Module):
            raise ModelError(f"asked for a network of any length of a {type(model).__name__}; give a PyTorch module, which is also run to compare results")
        super().__init__(model)
        self._compiled = compiled
        examples = split_inputs(example_inputs)
        self._parameters, self._positional, self._keywords = parameters_of(model), len(examples[0]), list(examples[1])
        self._leaves, self._tree = flat(examples)
        self._axes = _axes(model, examples, dimension)
        self.largest = self._length(self._leaves, "the example inputs")
        if self.largest < 2:
            raise ModelError(f"asked for a network of any length with example inputs of the length {self.largest}; give the longest that should be computed")
        self.lengths = _checked(lengths, self.largest)
        self._network(self.largest)

    def __repr__(self) -> str:
        made = ", ".join(str(length) for length in sorted(self.networks, reverse=True))
        return f"AnyLengthNetwork(lengths up to {self.largest}; compiled for {made})"

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Raises the errors of a compiled network, and ModelError for inputs that are too long, or whose lengths differ."""
        leaves, tree = flat(arranged(self._parameters, self._positional, self._keywords, args, kwargs) or (args, kwargs))
        if tree != self._tree:
            raise ModelError("a network of any length was called with another structure of arguments than its example inputs; call it as the model was called")
        length = self._length(leaves, "the inputs of a call")
        if not 0 < length <= self.largest:
            raise ModelError(f"a network of any length was called with inputs of the length {length}, and takes 1 to {self.largest}; "
                             "for more, give longer example inputs")  # fmt: skip
        network = self._network(size_for(length, self.lengths))
        if length < network.padding.least:
            raise ModelError(f"a network of any length was called with inputs of the length {length}, but the model needs at least {network.padding.least}")
        return network(nested(self._of_length(leaves, network.padding.length), tree), length)

    def _length(self, leaves: Leaves, what: str) -> int:
        """The extent that all inputs of any length have. Raises ModelError if they disagree, if there are none, or if another extent is not the examples'."""
        given = [(leaf, axis, example) for leaf, axis, example in zip(leaves, self._axes, self._leaves, strict=True) if axis is not None]
        if not given:
            raise ModelError(f"asked for a network of any length, but no tensor among {what} has the dimension that should vary; name it with dimension=")
        rows = [(_shape(leaf), _shape(example), axis) for leaf, axis, example in given]
        found = {shape[axis] for shape, _, axis in rows if len(shape) > axis}
        if len(found) == 1 and all((*shape[:axis], example[axis], *shape[axis + 1 :]) == example for shape, example, axis in rows):
            return found.pop()
        pairs = zip(given, rows, strict=True)
        told = ", ".join(f"{shape} for {example}" if isinstance(leaf, Leaf) else repr(leaf) for (leaf, *_), (shape, example, _) in pairs)
        axes = ", ".join(map(str, sorted({axis for *_, axis in rows})))
        raise ModelError(f"a network of any length takes the shapes of its examples with one other length, in dimension {axes}; {what} have {told}; "
                         "dimension={name: dimension} names the inputs that vary")  # fmt: skip

    def _of_length(self, leaves: Leaves, length: int) -> list[object]:
        """The inputs, padded or cut to a length."""
        pairs = zip(leaves, self._axes, strict=True)
        return [leaf if axis is None or not isinstance(leaf, Leaf) else padded_or_cut(leaf, axis, length) for leaf, axis in pairs]

    @property
    def sizes(self) -> Sequence[int]:
        """The lengths."""
        return self.lengths

    def _plain(self, made: PaddedNetwork) -> CompiledNetwork:
        return made.network

    def _save(self, networks: dict[int, PaddedNetwork], folder: Path) -> None:
        arrays = {size: tuple(one for one in made.padding.ends if one is not None) for size, made in networks.items()}
        paddings = {size: replace(made.padding, ends=arrays[size]) for size, made in networks.items()}
        axes = [axis for leaf, axis in zip(self._leaves, self._axes, strict=True) if isinstance(leaf, Leaf)]
        save_sizes({size: made.network for size, made in networks.items()}, folder, paddings, axes)

    def _made(self, length: int) -> PaddedNetwork:
        """The network for one length, compared with the model."""
        place = self.lengths.index(length)
        shortest = self.lengths[place - 1] + 1 if place else 1
        calls = {one: nested(self._of_length(self._leaves, one), self._tree) for one in (length, *others_of(length, shortest))}
        made = self._compiled(self._model, calls)
        shortest = min(max(shortest, made.padding.least), length)
        if shortest == 1 and not self._agrees(made, 1):  # models may treat one element as a case of its own
            made, shortest = replace(made, padding=replace(made.padding, least=2)), 2
        for one in lengths_to_try(length, shortest):
            if not self._agrees(made, one):
                raise NotForAnyLength(f"gives other results for the length {one} than its operators for the length {length}")
        return made

    def _agrees(self, made: PaddedNetwork, length: int) -> bool:
        """Whether the network computes what the model does for a length, with the rest of the example inputs beyond the end."""
        try:
            with torch.no_grad(), evaluating(self._model):
                wanted = results(self._model, self._tree, self._of_length(self._leaves, length))
        except Exception as error:  # models may raise anything
            if length == 1:
                return False
            raise NotForAnyLength(f"fails for the length {length} ({first_line(error)})") from error
        found, _ = flat(made(nested(self._of_length(self._leaves, made.padding.length), self._tree), length))
        return alike(found, wanted)


def _shape(leaf: object) -> tuple[int, ...]:
    return tuple(leaf.shape) if isinstance(leaf, Leaf) else ()


def _axes(model: torch.nn.Module, examples: CallArguments, dimension: Dimension) -> list[int | None]:
    """The dimension of each leaf of the arguments that has any extent, None for leaves of fixed shape."""
    parts = _by_name(model, examples)
    leaves = [(name, leaf) for name, part in parts for leaf in flat(part)[0]]
    if not isinstance(dimension, int):
        if unknown := sorted(dimension.keys() - {name for name, _ in parts}):
            raise ModelError(f"asked for any length of the input {unknown[0]}, which is not among the example inputs: {', '.join(name for name, _ in parts)}")
        return [dimension.get(name) if isinstance(leaf, Leaf) else None for name, leaf in leaves]
    extents = [leaf.shape[dimension] if isinstance(leaf, Leaf) and len(leaf.shape) > dimension else None for _, leaf in leaves]
    first = next((extent for extent in extents if extent is not None), None)
    return [dimension if extent is not None and extent == first else None for extent in extents]


def _by_name(model: torch.nn.Module, examples: CallArguments) -> list[tuple[str, object]]:
    """The arguments with the names of their parameters, in the order of their leaves."""
    args, kwargs = examples
    parameters = parameters_of(model)
    names = list(parameters.parameters) if parameters is not None else []
    return [*((names[place] if place < len(names) else f"argument {place}", one) for place, one in enumerate(args)), *kwargs.items()]


def _checked(lengths: Sequence[int] | None, largest: int) -> tuple[int, ...]:
    """The lengths asked for, or the default. Raises ModelError for lengths that no input can be padded to."""
    if lengths is None:
        return lengths_up_to(largest)
    wrong = [one for one in lengths if not hasattr(one, "__index__") or isinstance(one, bool) or not 2 <= one <= largest]
    if wrong:
        raise ModelError(f"asked for the length {wrong[0]!r}; give whole numbers from 2 to {largest}, the length of the example inputs")
    return tuple(sorted({*map(index, lengths), largest}))

