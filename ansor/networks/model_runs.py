"""Runs a model as it is, to compare results of calls of different sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import numpy as np
import torch
from torch.utils import _pytree as pytree

from ansor.graph.export import CallArguments
from ansor.graph.opened import closed, opened

MOST_DIFFERENCE = 1e-3
"""Allowed difference of a result between calls of different sizes, relative to the largest result: PyTorch's order of additions depends on the size."""

Leaf = torch.Tensor | np.ndarray
Leaves = Sequence[object]


def flat(call: object) -> tuple[list[object], pytree.TreeSpec]:
    """The leaves of arguments or results, and how they are nested."""
    return pytree.tree_flatten(opened(call))


def nested(leaves: Leaves, tree: pytree.TreeSpec) -> CallArguments:
    """Arguments of a call from their leaves."""
    return cast(CallArguments, closed(pytree.tree_unflatten(list(leaves), tree)))


def weights_of(model: object) -> list[torch.Tensor]:
    """The parameters and buffers of a module; nothing for anything else."""
    return [*model.parameters(), *model.buffers()] if isinstance(model, torch.nn.Module) else []


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """In evaluation mode, without calling `eval`, which may do more than that."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        for module, _ in modes:
            module.training = False
        yield
    finally:
        for module, training in modes:
            module.training = training


def results(model: torch.nn.Module, tree: pytree.TreeSpec, leaves: Leaves) -> Leaves:
    """Results of a call with copies of the inputs, because a model may write to them."""
    copies = [one.clone() if isinstance(one, torch.Tensor) else one for one in leaves]
    args, kwargs = nested(copies, tree)
    return flat(model(*args, **kwargs))[0]


def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether results are equal: floats up to what another order of additions may change, other dtypes exactly."""
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    finite = other[other.isfinite()].abs()
    most = max(MOST_DIFFERENCE, 4 * torch.finfo(other.dtype).eps) * (float(finite.max()) if finite.numel() else 0.0)
    parts = [torch.view_as_real(each) if each.is_complex() else each for each in (one, other)]
    return torch.allclose(parts[0].double(), parts[1].double(), rtol=0, atol=most, equal_nan=True)


def alike(some: Leaves, others: Leaves) -> bool:
    """Whether the results of two calls are equal, including their shapes."""
    if len(some) != len(others):
        return False
    pairs = list(zip(some, others, strict=True))
    tensors = [(one, other) for one, other in pairs if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)]
    rest = [(one, other) for one, other in pairs if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor))]
    return all(one.shape == other.shape and equal(one, other) for one, other in tensors) and all(one is other or one == other for one, other in rest)
