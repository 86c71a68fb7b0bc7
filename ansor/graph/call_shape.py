"""Checks a call's arguments and turns them into the graph's arrays, and turns arrays into results nested like the module's."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import numpy as np
import torch
from torch.utils import _pytree as pytree

from ansor.errors import ModelError
from ansor.graph.dtypes import value_of
from ansor.graph.from_torch import Fixed, Signature
from ansor.graph.ir import Array, Graph, Value
from ansor.graph.opened import closed, opened
from ansor.support.text import counted


class CallShape:
    """How one network is called. Arguments may be given by position or by name, as the module's own signature allows."""

    def __init__(self, signature: Signature, graph: Graph) -> None:
        self._signature = signature
        self._wanted = [graph.inputs[leaf] if isinstance(leaf, str) else leaf for leaf in signature.input_leaves]
        self._names = [leaf if isinstance(leaf, str) else "" for leaf in signature.input_leaves]
        self._dtypes = [getattr(torch, one.dtype, None) if isinstance(one, Value) else None for one in self._wanted]  # None for tensors that are not strided
        positional = pytree.tree_unflatten(list(range(len(self._wanted))), signature.input_tree)
        # the usual call, f(x, y), needs no unpacking of nested structures
        self._flat = positional == (tuple(range(len(self._wanted))), {}) and not any(isinstance(one, Fixed) for one in self._wanted)
        self._positional = len(positional[0])
        self._keywords = list(positional[1])
        self._single = signature.output_tree.is_leaf()

    def arrays_of(self, args: tuple[object, ...], kwargs: dict[str, object]) -> list[Array | torch.Tensor]:
        """One array for each input of the graph. Raises ModelError, naming the argument, if the call differs from the one that the network was compiled for."""
        leaves: Sequence[object] = args
        if not self._flat or kwargs or len(args) != len(self._wanted):
            leaves = self._flattened(args, kwargs)
        found: list[Array | torch.Tensor] = []
        for leaf, wanted, dtype, name in zip(leaves, self._wanted, self._dtypes, self._names, strict=True):
            if isinstance(wanted, Value):
                found.append(_checked(leaf, wanted, dtype, name))
            elif isinstance(leaf, (torch.Tensor, np.ndarray)) or leaf != wanted.value:
                raise ModelError(f"the network was called with {leaf!r} where it was compiled with {wanted.value!r}; compile it again for the new value")
        return found

    def results_from(self, results: list[object]) -> object:
        """The results, nested as the module nests them."""
        if self._single:
            return results[0]
        nested: object = pytree.tree_unflatten(results, self._signature.output_tree)
        return closed(nested) if self._signature.opened else nested

    def opened_results(self, results: list[object]) -> object:
        """The same, with objects that PyTorch's pytrees do not support as `Opened` nodes."""
        return pytree.tree_unflatten(results, self._signature.output_tree)

    def _flattened(self, args: tuple[object, ...], kwargs: dict[str, object]) -> list[object]:
        given = arranged(self._signature.parameters, self._positional, self._keywords, args, kwargs)
        if given is not None:
            leaves, tree = pytree.tree_flatten(opened(given) if self._signature.opened else given)
            if tree == self._signature.input_tree:
                return list(leaves)
        inputs = ", ".join(f"{name} {_described(wanted)}" for name, wanted in zip(self._names, self._wanted, strict=True) if isinstance(wanted, Value))
        named = f" and keywords {sorted(kwargs)}" if kwargs else ""
        raise ModelError(
            f"the network was called with {counted(len(args), 'positional argument')}{named}, but it was compiled for another structure of arguments; "
            f"call it as the model was called then, with {inputs}"
        )


def arranged(
    parameters: inspect.Signature | None, positional: int, keywords: Sequence[str], args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]] | None:
    """A call's arguments rearranged as so many positional ones and these keywords, by the parameters of the model; None if that is impossible."""
    if len(args) == positional and kwargs.keys() == set(keywords):
        return args, {key: kwargs[key] for key in keywords}
    if parameters is None:
        return None
    try:
        bound = parameters.bind(*args, **kwargs)
    except TypeError:
        return None
    names = [p.name for p in parameters.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:positional]
    given = _by_name(bound)
    defaults = {p.name: p.default for p in parameters.parameters.values() if p.default is not p.empty}
    wanted = [*names, *keywords]
    if len(names) < positional or any(name not in given and name not in defaults for name in wanted):
        return None
    if any(name not in wanted and not _same(value, defaults.get(name, inspect.Parameter.empty)) for name, value in given.items()):
        return None
    values = {**defaults, **given}
    return tuple(values[name] for name in names), {name: values[name] for name in keywords}


def _by_name(bound: inspect.BoundArguments) -> dict[str, object]:
    """The arguments of a call by parameter name; keywords that go into `**kwargs` by their own names."""
    found: dict[str, object] = {}
    for name, value in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            found.update(value)
        else:
            found[name] = value
    return found


def _same(one: object, other: object) -> bool:
    """True for equal plain values; tensors and arrays are not compared."""
    return one is other or (type(one) is type(other) and isinstance(one, (bool, int, float, str)) and one == other)


def _described(value: Value) -> str:
    return f"{value.dtype} of shape {value.shape}"


def _checked(leaf: object, wanted: Value, dtype: torch.dtype | None, name: str) -> Array | torch.Tensor:
    try:
        if isinstance(leaf, torch.Tensor) and leaf.dtype is dtype and leaf.shape == wanted.shape and leaf.is_cpu and leaf.layout is torch.strided:
            return leaf  # the usual case
    except RuntimeError:  # nested tensors claim to be strided, and have no shape
        pass
    if not isinstance(leaf, (torch.Tensor, np.ndarray)):
        raise ModelError(f"the network was called with a {type(leaf).__name__} as {name}; give a torch tensor or a NumPy array of {_described(wanted)}")
    if isinstance(leaf, np.ma.MaskedArray):
        raise ModelError(f"the network was called with a masked array as {name}, whose mask would be ignored; give .filled(value) or .data")
    found = value_of(leaf)
    if found != wanted:
        raise ModelError(
            f"the network was called with {name} being {_described(found)}; it was compiled for {_described(wanted)}: convert the input, or compile again"
        )
    if isinstance(leaf, torch.Tensor) and leaf.is_meta:
        raise ModelError(f"the network was called with {name} on the device meta, which holds no values; give a tensor on the cpu")
    return leaf
