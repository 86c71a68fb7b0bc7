from __future__ import annotations

import pytest
import torch
from torch.utils import _pytree as pytree

from ansor.graph.opened import Opened, closed, opened

pytestmark = pytest.mark.torch


class Layer:
    def __init__(self, keys: torch.Tensor, depth: int) -> None:
        self.keys, self.depth = keys, depth


class Cache:
    def __init__(self, layers: list[Layer], name: str) -> None:
        self.layers, self.name, self.itself = layers, name, self


def test_objects_that_hold_tensors_are_opened_and_closed_again() -> None:
    cache = Cache([Layer(torch.ones(2), 1), Layer(torch.zeros(3), 2)], "c")
    leaves, tree = pytree.tree_flatten(opened({"cache": cache, "other": (1, None, "x")}))
    assert [tuple(leaf.shape) for leaf in leaves if isinstance(leaf, torch.Tensor)] == [(2,), (3,)]
    back = closed(pytree.tree_unflatten([leaf + 1 if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], tree))
    assert isinstance(back, dict) and back["other"] == (1, None, "x")
    made = back["cache"]
    assert type(made) is Cache and made is not cache and made.name == "c"
    assert [(type(layer), layer.depth, layer.keys.tolist()) for layer in made.layers] == [(Layer, 1, [2, 2]), (Layer, 2, [1, 1, 1])]
    assert cache.layers[0].keys.tolist() == [1, 1]


def test_trees_of_like_objects_are_equal() -> None:
    def tree(size: int, layers: int, name: str) -> pytree.TreeSpec:
        return pytree.tree_flatten(opened(Cache([Layer(torch.ones(size), 1) for _ in range(layers)], name)))[1]

    assert tree(2, 2, "a") == tree(3, 2, "b") != tree(2, 3, "a")


def test_what_holds_no_tensor_stays_as_it_is() -> None:
    plain = Cache([], "empty")
    module = torch.nn.Linear(2, 2)
    for value in (plain, module, torch.ones(2), torch.float32, 3, None, Layer):
        assert opened(value) is value
    assert isinstance(opened(Layer(torch.ones(1), 0)), Opened)
