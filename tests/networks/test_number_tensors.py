"""Numbers in tensors become numbers, other tensors stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from ansor.networks.number_tensors import as_numbers, with_numbers

pytestmark = pytest.mark.torch


def taken(function: Callable[..., Any], *given: object) -> tuple[GraphModule, frozenset[int], list[Any]]:
    """A function's graph for shapes that vary, changed to take numbers at some places, and the arguments of a call as Dynamo makes it."""
    found: list[Any] = []

    def backend(graph: GraphModule, example_inputs: object) -> Callable[..., Any]:
        changed, places = with_numbers(graph)  # Dynamo tells where arguments come from until the backend returns

        def run(*arguments: Any) -> Any:
            found[:] = changed, places, list(arguments)
            for one, other in zip(graph(*arguments), changed(*as_numbers(arguments, places)), strict=True):
                assert torch.equal(one, other)
            return graph(*arguments)

        return run

    torch.compiler.reset()
    with torch.no_grad():
        assert torch.equal(torch.compile(function, backend=backend, dynamic=True)(*given), function(*given))
    graph, places, arguments = found
    return graph, places, arguments


def reads(graph: GraphModule) -> int:
    return sum(node.target == "item" for node in graph.graph.nodes)


def test_floats_of_modules_are_taken_as_they_are() -> None:
    graph, places, arguments = taken(torch.nn.Sequential(torch.nn.LeakyReLU(0.3), torch.nn.LeakyReLU(0.2)), torch.randn(4, 5))
    given = as_numbers(arguments, places)
    assert sorted(given[place] for place in places) == [0.2, 0.3] and not reads(graph)
    assert as_numbers(given, places) == given


def test_numbers_in_tensors_of_the_user_stay() -> None:
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        graph, places, _ = taken(lambda x, by: x * by.item(), torch.randn(4, 5), torch.tensor(2.0))
    assert not places and reads(graph) == 1
