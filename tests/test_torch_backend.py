"""`torch.compile(backend="ansor")`: the same results as PyTorch, whether our kernels or PyTorch compute them, and never an error."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from ansor.errors import AnsorWarning
from ansor.torch_backend import backend

pytestmark = pytest.mark.compiler


class Small(torch.nn.Module):
    """A convolution, a norm and a dense layer; gives a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.dense = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Linear(8, 5)

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        features = torch.relu(self.norm(self.conv(images)))
        return {"features": features, "scores": self.dense(features.mean((2, 3)))}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.manual_seed(0)
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    found: Callable[..., Any] = torch.compile(function, backend=backend, options={"threads": 1, "library": False})
    return found


def said(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a call gives, and what was said meanwhile."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = call()
    return found, [str(one.message) for one in heard if issubclass(one.category, AnsorWarning)]


def assert_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, one in found.items():
        torch.testing.assert_close(one, expected[name], rtol=1e-4, atol=1e-5)


def test_a_module_with_batches_that_change_and_weights_that_are_written_to() -> None:
    module = Small().eval()
    network = compiled(module)
    with torch.no_grad():
        for batch in (1, 2, 1):
            images = torch.randn(batch, 3, 8, 8)
            found, lines = said(lambda images=images: network(images))  # type: ignore[misc]
            assert_same(found, module(images))
            assert lines == []
        module.conv.weight.mul_(2)
        images = torch.randn(1, 3, 8, 8)
        assert_same(network(images), module(images))
        module.dense.weight.data = torch.randn(5, 8)
        assert_same(network(images), module(images))


def test_torch_finds_it_by_name() -> None:
    assert "ansor" in torch._dynamo.list_backends()


def test_gradients_are_pytorchs_and_said_once() -> None:
    module = Small().eval()
    network = compiled(module)

    def step() -> None:
        network(torch.ones(1, 3, 8, 8))["scores"].sum().backward()

    lines = said(step)[1] + said(step)[1]
    assert len(lines) == 1 and "gradients are asked for" in lines[0] and "PyTorch runs this part" in lines[0]
    assert module.conv.weight.grad is not None and float(module.conv.weight.grad.abs().sum()) > 0


def test_control_flow_that_depends_on_data() -> None:
    @compiled
    def absolute(values: torch.Tensor) -> torch.Tensor:
        doubled = values * 2
        return doubled + 1 if doubled.sum() > 0 else doubled - 1

    with torch.no_grad():
        for sign in (1.0, -1.0):
            values = torch.full((4, 4), sign)
            assert torch.equal(absolute(values), values * 2 + sign)


def test_inputs_that_are_written_to_are_pytorchs() -> None:
    @compiled
    def in_place(values: torch.Tensor) -> torch.Tensor:
        values.mul_(2)
        return values + 1

    with torch.no_grad():
        values = torch.ones(4)
        found, lines = said(lambda: in_place(values))
    assert torch.equal(found, torch.full((4,), 3.0)) and torch.equal(values, torch.full((4,), 2.0))
    assert len(lines) == 1 and lines[0].startswith("torch.compile with ansor: ") and lines[0].endswith("PyTorch runs this part")


def test_views_of_inputs_stay_views() -> None:
    @compiled
    def view(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return values.view(2, 2), values * 2

    with torch.no_grad():
        values = torch.ones(4)
        (square, _), lines = said(lambda: view(values))
        values.add_(1)
    assert torch.equal(square, torch.full((2, 2), 2.0)) and "shares memory with an input" in lines[0]


def test_results_that_share_memory_go_on_doing_so() -> None:
    @compiled
    def twice(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        doubled = values * 2
        return doubled, doubled.view(2, 2)

    with torch.no_grad():
        (flat, square), lines = said(lambda: twice(torch.ones(4)))
        flat.add_(1)
    assert torch.equal(square, torch.full((2, 2), 3.0)) and "two results share memory" in lines[0]


def test_autocast_outside() -> None:
    module, values = torch.nn.Linear(16, 8).eval(), torch.randn(4, 16)
    network = compiled(module)
    with torch.no_grad():
        for _ in range(2):
            with torch.autocast("cpu", torch.bfloat16):
                (found, _), expected = said(lambda: network(values)), module(values)
            assert found.dtype == expected.dtype
            torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)
            torch.testing.assert_close(network(values), module(values), rtol=1e-4, atol=1e-5)


def test_other_weights_of_the_same_graph() -> None:
    """Two modules of one class share what Dynamo captured; each has its own weights."""

    @compiled
    def run(module: torch.nn.Module, values: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = module(values)
        return found

    modules, values = [torch.nn.Linear(4, 3) for _ in range(3)], torch.randn(2, 4)
    with torch.no_grad():
        for module in (*modules, *modules):
            torch.testing.assert_close(run(module, values), module(values), rtol=1e-4, atol=1e-5)


def test_inference_mode() -> None:
    with torch.inference_mode():
        module, values = torch.nn.Linear(4, 3), torch.randn(2, 4)
        torch.testing.assert_close(compiled(module)(values), module(values), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("given", "sentence"), [({"options": {"trails": 3}}, "has no option 'trails'"), ({"mode": "max-autotune"}, "has no modes")])
def test_options_that_are_none_are_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Exception, match=sentence):
        torch.compile(Small().eval(), backend=backend, **given)(torch.ones(1, 3, 8, 8))
