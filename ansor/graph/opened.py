"""Represents objects that PyTorch's pytrees do not support, such as the caches of text models, as nodes of their attributes.

    DynamicCache(layers=[DynamicLayer(keys=…, values=…)])        becomes, during export,        Opened(DynamicCache, {layers: [Opened(DynamicLayer, …)]})
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import torch
from torch.utils import _pytree as pytree


@dataclass(frozen=True, eq=False)
class Opened:
    """`parts`: the attributes of an object that hold tensors, themselves opened; `rest`: its other attributes, which every copy shares."""

    kind: type
    parts: Mapping[str, object]
    rest: Mapping[str, object]


@dataclass(frozen=True)
class _Context:
    """An opened object without its tensors. `rest` is not compared, so two caches of one kind and depth are equal."""

    kind: type
    names: tuple[str, ...]
    rest: Mapping[str, object] = field(compare=False)


def _flattened(node: Opened) -> tuple[list[object], _Context]:
    return list(node.parts.values()), _Context(node.kind, tuple(node.parts), node.rest)


def _with_keys(node: Opened) -> tuple[list[tuple[pytree.KeyEntry, object]], _Context]:
    return [(pytree.GetAttrKey(name), part) for name, part in node.parts.items()], _flattened(node)[1]


def _unflattened(parts: Iterable[object], context: _Context) -> Opened:
    return Opened(context.kind, dict(zip(context.names, parts, strict=True)), context.rest)


pytree.register_pytree_node(
    Opened, _flattened, _unflattened, serialized_type_name="ansor.graph.opened.Opened", flatten_with_keys_fn=_with_keys
)


def opened(tree: object) -> object:
    """The same tree with every object that holds tensors opened. Objects without attributes of their own stay as they are."""
    return pytree.tree_map(lambda leaf: _opened_object(leaf, ()), tree)


def _opened_object(leaf: object, inside: tuple[int, ...]) -> object:
    if isinstance(leaf, (torch.Tensor, torch.nn.Module, type)) or not hasattr(leaf, "__dict__") or id(leaf) in inside:
        return leaf
    around = (*inside, id(leaf))
    values = {name: pytree.tree_map(lambda one: _opened_object(one, around), value) for name, value in vars(leaf).items()}
    parts = {name: value for name, value in values.items() if any(isinstance(one, torch.Tensor) for one in pytree.tree_leaves(value))}
    return Opened(type(leaf), parts, {name: value for name, value in vars(leaf).items() if name not in parts}) if parts else leaf


def closed(tree: object) -> object:
    """The same tree with every opened object replaced by a new object of its original kind."""
    return pytree.tree_map(lambda leaf: _closed_object(leaf) if isinstance(leaf, Opened) else leaf, tree, is_leaf=lambda leaf: isinstance(leaf, Opened))


def _closed_object(node: Opened) -> object:
    made: object = object.__new__(node.kind)
    vars(made).update(node.rest)
    vars(made).update((name, closed(part)) for name, part in node.parts.items())
    return made
