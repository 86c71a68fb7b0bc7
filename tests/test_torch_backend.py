"""`torch.compile(backend="ansor")`: the same results as PyTorch, whether our kernels or PyTorch compute them, and never an error."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import forward_ad

from ansor import torch_backend
from ansor.api import compile_sharing
from ansor.errors import AnsorWarning
from ansor.graph.tasks import extract
from ansor.torch_backend import backend

pytestmark = [
    pytest.mark.compiler, pytest.mark.usefixtures("fresh_dynamo"), pytest.mark.filterwarnings("ignore::ansor.errors.AnsorWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]  # fmt: skip


class Small(torch.nn.Module):
    """A convolution, a norm and a dense layer; returns a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.dense = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Linear(8, 5)

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        features = torch.relu(self.norm(self.conv(images)))
        return {"features": features, "scores": self.dense(features.mean((2, 3)))}


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    found: Callable[..., Any] = torch.compile(function, backend=backend, options={"threads": 1, "library": False})
    return found


def said(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """The result of a call, and the warnings during it."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        found = call()
    return found, [str(one.message) for one in heard if issubclass(one.category, AnsorWarning)]


def assert_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, one in found.items():
        torch.testing.assert_close(one, expected[name], rtol=1e-4, atol=1e-5)


@pytest.fixture
def networks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The modules for which networks were requested."""
    made: list[object] = []

    def counted(module: torch.nn.Module, *rest: Any, **options: Any) -> object:
        made.append(module)
        return extract(module, *rest, **options)

    monkeypatch.setattr(torch_backend, "extract", counted)
    return made


def test_changing_batch_sizes(networks: list[object]) -> None:
    module = Small().eval()
    network = compiled(module)
    with torch.no_grad():
        for batch in (1, 2, 1, 2, 1):
            images = torch.randn(batch, 3, 8, 8)
            found, lines = said(lambda images=images: network(images))  # type: ignore[misc]
            assert_same(found, module(images))
            assert lines == []
    assert len(networks) == 2


def in_inference_mode(weight: torch.Tensor) -> None:
    with torch.inference_mode():
        weight.data.mul_(2)


WRITES: list[Callable[[torch.Tensor], object]] = [
    lambda weight: weight.mul_(2), lambda weight: setattr(weight, "data", weight * 2), lambda weight: weight.data.mul_(2),
    lambda weight: np.multiply(weight.numpy(), 2, out=weight.numpy()), in_inference_mode, lambda weight: weight.fill_(torch.nan),
]  # fmt: skip


@pytest.mark.parametrize("write", WRITES)
def test_changing_weights(write: Callable[[torch.Tensor], object], networks: list[object]) -> None:
    module, values = torch.nn.Linear(4, 3).requires_grad_(False), torch.randn(2, 4)
    network, heard = compiled(module), []
    with torch.no_grad():
        for again in (False, True):
            if again:
                write(module.weight)
            for _ in range(3):
                found, lines = said(lambda: network(values))
                torch.testing.assert_close(found, module(values), rtol=1e-4, atol=1e-5, equal_nan=True)
                heard += lines
    assert len(networks) == 2
    assert len(heard) == 1 and "weights have changed since the last call" in heard[0]


def test_weights_that_change_before_each_call(networks: list[object]) -> None:
    module, values = torch.nn.Linear(4, 3), torch.randn(2, 4)
    network = compiled(module)
    with torch.no_grad():
        for _ in range(5):
            module.bias.add_(1)
            torch.testing.assert_close(network(values), module(values), rtol=1e-4, atol=1e-5)
    assert len(networks) == 1


def test_networks_of_several_shapes_share_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def watched(*given: Any, **options: Any) -> object:
        made.append(compile_sharing(*given, **options))
        return made[-1]

    monkeypatch.setattr(torch_backend, "compile_sharing", watched)
    model = torch.nn.Sequential(torch.nn.Embedding(5000, 8), torch.nn.Flatten(), torch.nn.Linear(16, 3)).eval()
    fast = compiled(model)
    for rows in (2, 3):
        words = torch.randint(0, 5000, (rows, 2))
        with torch.no_grad():
            torch.testing.assert_close(fast(words), model(words), rtol=1e-4, atol=1e-5)
    (one,), (other,) = (network.constants for network in made)
    assert one.nbytes == 5000 * 8 * 4 and np.shares_memory(one, other)


def test_weights_of_inference_mode() -> None:
    with torch.inference_mode():
        module, values = torch.nn.Linear(4, 3), torch.randn(2, 4)
        network = compiled(module)
        for factor in (1, 1, 2, 1, 1):
            module.weight.mul_(factor)
            torch.testing.assert_close(network(values), module(values), rtol=1e-4, atol=1e-5)


def test_training_modules_run_in_pytorch_and_are_tried_once(networks: list[object]) -> None:
    modules = [torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4)]
    network = compiled(modules[0])
    with torch.no_grad():
        for _ in range(3):
            values = torch.randn(5, 4)
            assert torch.equal(network(values), modules[1](values))
    assert_same(modules[0].state_dict(), modules[1].state_dict())
    assert len(networks) == 1


def test_hidden_writes_to_weights() -> None:
    modules = [torch.nn.InstanceNorm1d(3, track_running_stats=True) for _ in range(2)]
    network = compiled(modules[0])
    with torch.no_grad():
        for _ in range(3):
            values = torch.randn(2, 3, 4)
            torch.testing.assert_close(network(values), modules[1](values))
            assert_same(modules[0].state_dict(), modules[1].state_dict())


def test_unreferenced_weights_are_freed() -> None:
    module = torch.nn.Linear(4, 3)
    with torch.no_grad():
        compiled(module)(torch.ones(2, 4))
    gone = weakref.ref(module.weight)
    del module
    gc.collect()
    assert gone() is None


def test_strides_equal_pytorchs(networks: list[object]) -> None:
    def turned(values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = values.t() * 2
        torch._dynamo.graph_break()
        return found.t().view(-1) * 1, found.sum(0, keepdim=True).expand(4, -1)  # PyTorch only makes this view for the actual strides of found

    network = compiled(turned)
    with torch.no_grad():
        for _ in range(2):
            values = torch.randn(3, 4)
            for one, other in zip(network(values), turned(values), strict=True):
                torch.testing.assert_close(one, other)
    assert networks


def test_a_result_is_a_view_for_some_strides_only() -> None:
    plain = compiled(lambda values: values.contiguous())
    with torch.no_grad():
        for _ in range(2):
            for values in (torch.randn(4, 3).t(), torch.randn(5, 4), torch.randn(4, 5).t()):
                assert (plain(values).data_ptr() == values.data_ptr()) is values.is_contiguous()


def test_gradients_requested_inside_the_function() -> None:
    module, values = torch.nn.Linear(4, 3), torch.randn(2, 4)

    @compiled
    def asks(values: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            found: torch.Tensor = module(values)
            return found

    with torch.no_grad():
        assert asks(values).requires_grad


def test_forward_gradients_run_in_pytorch() -> None:
    network = compiled(lambda values: values.sin())
    with torch.no_grad(), forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(3), torch.full((3,), 2.0))  # type: ignore[no-untyped-call]
        found, lines = said(lambda: forward_ad.unpack_dual(network(dual)))  # type: ignore[no-untyped-call]
    torch.testing.assert_close(found.tangent, 2 * torch.ones(3).cos())
    assert "forward gradients are asked for" in lines[0]


def test_function_transforms_run_in_pytorch() -> None:
    def total(values: torch.Tensor) -> torch.Tensor:
        return values.sin().sum()

    slope = compiled(torch.func.grad(total))
    with torch.no_grad():
        found, lines = said(lambda: slope(torch.ones(3)))
    torch.testing.assert_close(found, torch.ones(3).cos())
    assert type(found) is torch.Tensor and "transformed by torch.func" in lines[0]


def test_more_shapes_than_networks(monkeypatch: pytest.MonkeyPatch, networks: list[object]) -> None:
    monkeypatch.setattr(torch_backend, "MOST_NETWORKS", 2)
    network = torch.compile(lambda values: values * 2, backend=backend, dynamic=True)
    heard: list[str] = []
    with torch.no_grad():
        for size in (2, 3, 4, 5, 2, 3):
            found, lines = said(lambda size=size: network(torch.ones(size)))  # type: ignore[misc]
            assert torch.equal(found, torch.full((size,), 2.0))
            heard += lines
    assert len(networks) == 2 and len(heard) == 1 and "called with 2 other combinations" in heard[0]


@pytest.mark.parametrize("pad", [False, True])
def test_floats_of_modules_are_numbers_when_shapes_vary(pad: bool, networks: list[object]) -> None:
    """Dynamo then passes the momentum, the epsilon and the slope as tensors."""
    last = torch.nn.LeakyReLU(0.3)
    module = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), last).eval()
    network = torch.compile(module, backend=backend, options={"threads": 1, "library": False, "pad": pad}, dynamic=True)
    heard: list[str] = []
    for size, slope, made in ((6, 0.3, 1), (7, 0.3, 2), (6, 0.3, 2), (6, 0.5, 3), (6, 0.3, 3)):
        last.negative_slope = slope
        values = torch.randn(1, 2, size, size)
        with torch.no_grad():
            found, lines = said(lambda values=values: network(values))  # type: ignore[misc]
        torch.testing.assert_close(found, module(values), rtol=1e-4, atol=1e-5)
        assert len(networks) == made or pad
        heard += lines
    assert all("not padded" in line for line in heard) if pad else not heard
    network(values).sum().backward()  # in PyTorch
    assert module[0].weight.grad is not None


def test_numbers_that_do_not_recur_run_in_pytorch(networks: list[object]) -> None:
    """0.0 and -0.0 are two numbers."""
    only = torch.nn.LeakyReLU(0.3)
    module = torch.nn.Sequential(only)
    network = torch.compile(module, backend=backend, options={"threads": 1}, dynamic=True)
    heard, made = list[str](), list[int]()
    with torch.no_grad():
        for slope in (0.3, 0.5, 0.0, -0.0, 0.0, 0.0, -0.0, -0.0):
            only.negative_slope = slope
            values = torch.tensor([-1.0, 2.0, -3.0])
            found, lines = said(lambda values=values: network(values))  # type: ignore[misc]
            assert torch.equal(found, module(values)) and torch.equal(found.signbit(), module(values).signbit())
            heard += lines
            made.append(len(networks))
    assert made == [1, 2, 2, 2, 2, 3, 3, 4]
    assert len(heard) == 1 and "with 2 other numbers, so a new one is compiled on its 3rd call; PyTorch runs this part" in heard[0]


def test_shapes_that_do_not_recur_run_in_pytorch(monkeypatch: pytest.MonkeyPatch, networks: list[object]) -> None:
    monkeypatch.setattr(torch_backend, "SHAPES_AT_ONCE", 1)
    modules = [torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)]
    network = torch.compile(lambda module, values: module(values), backend=backend, options={"threads": 1, "library": False}, dynamic=True)
    heard, made = list[str](), list[int]()
    with torch.no_grad():
        for size in (2, 3, 5, 3, 2, 3, 3):
            values = torch.randn(size, 4)
            found, lines = said(lambda values=values: network(modules[0], values))  # type: ignore[misc]
            torch.testing.assert_close(found, modules[0](values), rtol=1e-4, atol=1e-5)
            heard += lines
            made.append(len(networks))
        network(modules[1], torch.randn(2, 4))
    assert made == [1, 1, 1, 1, 1, 2, 2]
    assert len(heard) == 1 and "is compiled on its 3rd call; PyTorch runs this part" in heard[0]
    assert len(networks) == 3  # other weights, the first shape


def test_a_mistake_in_a_call_raises_and_the_next_call_is_compiled(networks: list[object]) -> None:
    module = torch.nn.Embedding(5, 3)
    network = compiled(module)
    with torch.no_grad():
        for _ in range(2):
            with pytest.raises(IndexError):
                network(torch.tensor([1, 9]))
        for _ in range(2):
            found, lines = said(lambda: network(torch.tensor([1, 4])))
            assert torch.equal(found, module(torch.tensor([1, 4]))) and lines == []
    assert len(networks) == 3


def test_results_that_are_not_dense() -> None:
    network = compiled(lambda values: (values * 2).to_sparse())
    with torch.no_grad():
        for _ in range(2):
            found = network(torch.eye(3))
            assert found.is_sparse and torch.equal(found.to_dense(), 2 * torch.eye(3))


def test_calls_from_several_threads() -> None:
    module = torch.nn.Linear(4, 3)
    network, wrong = compiled(module), list[object]()

    def call(number: int) -> None:
        with torch.no_grad():
            for batch in (1, 2, 3, 1):
                values = torch.full((batch, 4), float(number))
                if not torch.allclose(network(values), module(values), atol=1e-4):
                    wrong.append(number)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(call, range(3)))
    assert not wrong


def test_torch_finds_it_by_name() -> None:
    assert "ansor" in torch._dynamo.list_backends()


def test_gradients_run_in_pytorch_with_one_warning() -> None:
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


def test_writes_to_inputs_run_in_pytorch() -> None:
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


def test_results_that_share_memory_keep_sharing_it() -> None:
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


def test_the_same_graph_with_other_weights() -> None:
    """Two modules of one class share a graph in Dynamo; each has its own weights."""

    @compiled
    def run(module: torch.nn.Module, values: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = module(values)
        return found

    modules, values = [torch.nn.Linear(4, 3) for _ in range(3)], torch.randn(2, 4)
    with torch.no_grad():
        for module in (*modules, *modules):
            torch.testing.assert_close(run(module, values), module(values), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [({"options": {"trails": 3}}, r"option 'trails', which the backend ansor does not have \(did you mean trials\?\)"),
     ({"mode": "max-autotune"}, "has no modes")],
)  # fmt: skip
def test_unknown_options_are_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Exception, match=sentence):
        torch.compile(Small().eval(), backend=backend, **given)(torch.ones(1, 3, 8, 8))
