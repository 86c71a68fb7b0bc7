"""A network is called as its module may be called: by position, by name, with defaults left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from ansor.errors import ModelError
from ansor.graph.export import ExampleInputs
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import ExtractedGraph, extract

pytestmark = pytest.mark.torch
Reference = Callable[[ExtractedGraph], CompiledNetwork]
X, Y = torch.randn(2, 3), torch.randn(2, 3)


def model(x: torch.Tensor, y: torch.Tensor | None = None, scale: float = 2.0, *, flag: bool = False, **rest: torch.Tensor) -> torch.Tensor:
    made = x * scale + (y if y is not None else 1)
    return made + sum(rest.values()) if rest else made * (2 if flag else 1)


@pytest.mark.parametrize("given", [(X, Y), {"x": X, "y": Y}, {"y": Y, "x": X}, (X, Y, 2.0), {"x": X, "y": Y, "flag": False}])
def test_by_position_and_by_name(given: ExampleInputs, reference: Reference) -> None:
    network = reference(extract(model, given))
    wanted = model(X, Y)
    for found in (network(X, Y), network(X, y=Y), network(y=Y, x=X), network(X, Y, 2.0), network(X, Y, flag=False), network(X, Y, scale=2.0, flag=False)):
        torch.testing.assert_close(found, wanted)
    wrong: list[tuple[tuple[object, ...], dict[str, object]]] = [
        ((X,), {}), ((X, Y, 3.0), {}), ((X, Y), {"flag": True}), ((X, Y, X), {}), ((X, Y), {"z": X}), ((), {}),
        ((X, None), {}), ((None, Y), {}), ((X,), {"x": X}),
    ]  # fmt: skip
    for args, kwargs in wrong:
        with pytest.raises(ModelError, match="the network was called with"):
            network(*args, **kwargs)


def test_an_argument_without_a_value_when_compiled(reference: Reference) -> None:
    network = reference(extract(model, (X,)))
    for found in (network(X), network(x=X), network(X, None), network(X, y=None, flag=False)):
        torch.testing.assert_close(found, X * 2 + 1)
    with pytest.raises(ModelError, match="but it was compiled for another structure of arguments"):
        network(X, Y)


def test_any_keywords(reference: Reference) -> None:
    network = reference(extract(model, {"x": X, "a": Y, "b": X}))
    wanted = model(X, a=Y, b=X)
    for found in (network(X, a=Y, b=X), network(b=X, a=Y, x=X), network(X, None, b=X, a=Y)):
        torch.testing.assert_close(found, wanted)
    with pytest.raises(ModelError, match="the network was called with"):
        network(X, a=Y)
