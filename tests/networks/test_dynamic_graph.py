"""What varies in a graph of Dynamo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from ansor.networks.dynamic_graph import DynamicGraph, dynamic_graph

pytestmark = [
    pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo"), pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]  # fmt: skip


def found(function: Callable[..., Any], *inputs: torch.Tensor, dynamic: bool | None = True) -> DynamicGraph | None:
    """What varies in the graph of a function, of which Dynamo makes one."""
    graphs: list[DynamicGraph | None] = []

    def backend(graph: torch.fx.GraphModule, _: Sequence[object]) -> Callable[..., Any]:
        graphs.append(dynamic_graph(graph))
        return graph

    torch.compile(function, backend=backend, dynamic=dynamic)(*inputs)
    (made,) = graphs
    return made


def test_extents_after_the_first_dimension_vary_if_there_are_any() -> None:
    graph = found(lambda x, y: x.sin() + y.cos(), torch.ones(3, 20), torch.ones(3, 20))
    assert graph is not None and list(graph.axes.values()) == [(1,), (1,)]
    graph = found(lambda x: x.sin(), torch.ones(20))
    assert graph is not None and list(graph.axes.values()) == [(0,)]


def test_static_graphs_and_results_that_are_numbers() -> None:
    assert found(lambda x: x.sin(), torch.ones(3, 20), dynamic=False) is None
    assert found(lambda x: (x.sin(), x.shape[1]), torch.ones(3, 20)) is None


def test_arguments_of_a_length() -> None:
    graph = DynamicGraph({1: (1,), 3: (0, 1)}, frozenset({0}))
    given = [3, torch.ones(2, 3), torch.ones(4), torch.ones(3, 3)]
    assert graph.length(given) == 3 and graph.length([3, torch.ones(2, 3), None, torch.ones(3, 4)]) is None
    number, one, other, square = graph.of_length(given, 5)
    assert number == 5 and isinstance(one, torch.Tensor) and one.shape == (2, 5) and other is given[2]
    assert isinstance(square, torch.Tensor) and square.shape == (5, 5) and square.is_contiguous()
