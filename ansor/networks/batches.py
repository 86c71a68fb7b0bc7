"""A network for any number of rows: calls are split into batches, and for each batch size a network is compiled on first use.

The sizes are the number of rows of the example inputs and the powers of two below it. With 8 example rows, a call with 13 rows is computed as 8 + 4 + 1:
nothing is padded, and no row is computed twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch.utils import _pytree as pytree

from ansor.errors import ModelError
from ansor.graph.export import CallArguments, ExampleInputs, split_inputs
from ansor.graph.network import CompiledNetwork
from ansor.graph.opened import closed
from ansor.networks.model_runs import Leaf, Leaves, equal, evaluating, flat, nested, results
from ansor.networks.saving import save_sizes
from ansor.networks.size_arithmetic import all_batch_sizes, batch_sizes
from ansor.networks.sized import SizedNetworks
from ansor.support.text import counted, first_line


class BatchedNetwork(SizedNetworks[CompiledNetwork]):
    """Calls like the module, with any number of rows. The first dimension of every input and every result has one element per row."""

    MADE_BY, SIZE = "compile_batches", "{} rows"

    def __init__(self, model: object, example_inputs: ExampleInputs, compiled: Callable[[ExampleInputs], CompiledNetwork]) -> None:
        """`compiled`: compiles a network for one batch size. Raises ModelError for inputs without a common number of rows, at least two, and for a model whose
        results for a row depend on the other rows. The model is run to test this."""
        if not isinstance(model, torch.nn.Module):
            raise ModelError(f"asked for a network of any batch size of a {type(model).__name__}; give a PyTorch module, which is run with one row and several")
        super().__init__(model)
        self._examples = split_inputs(example_inputs)
        leaves, _ = flat(self._examples)
        self.largest = _rows(leaves, "the example inputs")
        if self.largest < 2:
            raise ModelError("asked for a network of any batch size with example inputs of one row; give as many as should be computed at once, at least 2")
        _check_independent(model, self._examples, self.largest)
        self._compiled = compiled
        self._network(self.largest)

    def __repr__(self) -> str:
        made = ", ".join(str(size) for size in sorted(self.networks, reverse=True))
        return f"BatchedNetwork(up to {self.largest} rows at once; compiled for {made})"

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Raises the errors of a compiled network, and ModelError for inputs that do not have the same number of rows."""
        leaves, tree = flat((args, kwargs))
        rows = _rows(leaves, "the inputs of a call")
        if not rows:
            raise ModelError("a network of any batch size was called with 0 rows; give at least one")
        parts, first = [], 0
        for size in batch_sizes(rows, self.largest):
            given = nested(_sliced(leaves, first, size), tree)
            parts.append((size, self._network(size)(*given[0], **given[1])))
            first += size
        return parts[0][1] if len(parts) == 1 else _joined(parts)

    @property
    def sizes(self) -> Sequence[int]:
        """The sizes of batches."""
        return all_batch_sizes(self.largest)

    def _plain(self, made: CompiledNetwork) -> CompiledNetwork:
        return made

    def _made(self, size: int) -> CompiledNetwork:
        leaves, tree = flat(self._examples)
        args, kwargs = nested(_sliced(leaves, 0, size), tree)
        return self._compiled(kwargs if kwargs and not args else args)

    def _save(self, networks: dict[int, CompiledNetwork], folder: Path) -> None:
        save_sizes(networks, folder)


def _rows(leaves: Leaves, what: str) -> int:
    """The number of rows that all arrays have. Raises ModelError if they disagree, or there are no arrays."""
    shapes = [tuple(one.shape) for one in leaves if isinstance(one, Leaf)]
    if not shapes or () in shapes or len({shape[0] for shape in shapes}) > 1:
        found = ", ".join(map(str, shapes)) or "none"
        raise ModelError(f"a network of any batch size takes arrays whose first dimensions, the rows, are equal; {what} have the shapes {found}")
    return int(shapes[0][0])


def _sliced(leaves: Leaves, first: int, size: int) -> list[object]:
    return [one[first : first + size] if isinstance(one, Leaf) else one for one in leaves]


def _joined(parts: Sequence[tuple[int, object]]) -> object:
    """Results of batches, concatenated. Raises ModelError for results without rows."""
    opened = [flat(result) for _, result in parts]
    joined = [_one_after_another(ones, [size for size, _ in parts]) for ones in zip(*(leaves for leaves, _ in opened), strict=True)]
    return closed(pytree.tree_unflatten(joined, opened[0][1]))


def _one_after_another(ones: Leaves, sizes: Sequence[int]) -> object:
    first = ones[0]
    if not isinstance(first, Leaf):
        if any(one != first for one in ones):
            raise ModelError(f"batches gave {first!r} and {next(one for one in ones if one != first)!r}, which cannot be joined; return tensors")
        return first
    arrays = [one for one in ones if isinstance(one, Leaf)]
    if any(not one.shape or one.shape[0] != size for one, size in zip(arrays, sizes, strict=True)):
        shapes = " and ".join(str(tuple(one.shape)) for one in arrays[:2])
        raise ModelError(f"batches of {sizes[0]} and {sizes[1]} rows gave results of the shapes {shapes}; return one row for each row of the inputs")
    if isinstance(first, torch.Tensor):
        return torch.cat([one for one in arrays if isinstance(one, torch.Tensor)])
    return np.concatenate([one for one in arrays if isinstance(one, np.ndarray)])


def _check_independent(model: torch.nn.Module, examples: CallArguments, rows: int) -> None:
    """Run the model, and raise ModelError unless it computes the first and the last of several rows as it computes each alone."""
    leaves, tree = flat(examples)
    among = [_varied(one) if isinstance(one, Leaf) else one for one in leaves]
    if all(_alike(one) for one in among if isinstance(one, torch.Tensor)):
        raise ModelError("asked for a network of any batch size with example inputs whose rows are all equal; give rows that differ, to test whether one "
                         "row depends on another")  # fmt: skip
    for place in (0, rows - 1):
        alone = [one[place : place + 1] if isinstance(one, torch.Tensor) else one for one in among]
        try:
            with torch.no_grad(), evaluating(model):
                several, single = (results(model, tree, given) for given in (among, alone))
        except Exception as error:  # models may raise anything
            raise ModelError(f"asked for a network of any batch size of a model that fails with one row or with {rows}: {first_line(error)}") from error
        _compare(several, single, place, rows)


def _compare(several: Leaves, single: Leaves, place: int, rows: int) -> None:
    """Raises ModelError if the results of a row alone differ from those among several rows."""
    if len(several) != len(single):
        raise ModelError(f"a network of any batch size gives equally many results for all batches; this model gives {len(several)} and {len(single)}")
    for one, other in zip(several, single, strict=True):
        if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
            if one != other:
                raise ModelError(f"a network of any batch size gives tensors; this model's results have {one!r} for {rows} rows, and {other!r} for one")
            continue
        if not one.ndim or one.shape[0] != rows or other.shape != (1, *one.shape[1:]):
            found = f"{tuple(one.shape)} for {counted(rows, 'row')} and {tuple(other.shape)} for one"
            raise ModelError(f"a network of any batch size gives a row of results for each row of inputs; this model's results have the shapes {found}")
        if not equal(one[place : place + 1], other):
            raise ModelError("asked for a network of any batch size of a model whose results for a row depend on the other rows; compile it for one size")


def _varied(given: Leaf) -> torch.Tensor:
    """Values of the same kind that differ from row to row: with equal rows, a dependence on another row would not show.

    Floats are also scaled and shifted; integers are only permuted, as they may be indices.
    """
    tensor = torch.as_tensor(given).detach()
    rows = [row.reshape(-1).roll(place).reshape(row.shape) for place, row in enumerate(tensor)]
    if tensor.is_floating_point():
        rows = [row * (1 + place / 8) + place / 8 for place, row in enumerate(rows)]
    return torch.stack(rows).to(tensor.dtype)


def _alike(rows: torch.Tensor) -> bool:
    return bool((rows == rows[:1]).all())
