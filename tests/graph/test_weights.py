"""Weights that change after compiling are noticed, however they are changed, once for each network."""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import nn

from ansor.errors import AnsorWarning
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import ExtractedGraph, extract
from ansor.graph.weights import SHARE, WatchedWeights, WeightState

pytestmark = pytest.mark.torch
Reference = Callable[[ExtractedGraph], CompiledNetwork]


def model() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 4).bfloat16().float()).eval()


def stepped(net: nn.Sequential) -> None:
    """One step of training, as anyone does it."""
    optimiser = torch.optim.SGD(net.parameters(), 0.1)
    net(torch.randn(3, 8)).square().sum().backward()
    optimiser.step()


def weight(net: nn.Sequential) -> torch.Tensor:
    return dict(net.named_parameters())["0.weight"]


CHANGES: dict[str, Callable[[nn.Sequential], object]] = {
    "in place": lambda net: nn.init.zeros_(weight(net)),
    "through .data": lambda net: weight(net).data.zero_(),
    "other data": lambda net: setattr(weight(net), "data", torch.randn(4, 8)),
    "another parameter": lambda net: setattr(net[0], "bias", nn.Parameter(torch.ones(4))),
    "another module": lambda net: net.__setitem__(2, nn.Linear(4, 4)),
    "loaded": lambda net: net.load_state_dict(model().state_dict()),
    "assigned": lambda net: net.load_state_dict(model().state_dict(), assign=True),
    "statistics": lambda net: net.train()(torch.randn(5, 8)),
    "a step of training": stepped,
    "another dtype": lambda net: net.double(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_said_once(name: str, reference: Reference) -> None:
    net, x = model(), torch.randn(2, 8)
    wanted = net(x).detach()
    network = reference(extract(net, x))
    network(x)
    CHANGES[name](net)
    assert network._watched is not None
    network._watched._next = 0.0  # as if time had passed
    with pytest.warns(AnsorWarning, match=r"of Sequential has changed since the network was compiled.*compile the model again"):
        found = network(x)
    torch.testing.assert_close(found, wanted)
    network(x)


def test_nothing_is_said_where_nothing_changed(reference: Reference) -> None:
    net, x = model(), torch.randn(2, 8)
    weight(net).data[0, 0] = float("nan")
    network = reference(extract(net, x))
    dict(net.named_buffers())["1.num_batches_tracked"].add_(1)  # nobody reads it
    net.requires_grad_(False).share_memory()
    for _ in range(3):
        assert network._watched is not None
        network._watched._next = 0.0
        network(x)


def test_a_module_that_is_gone_is_not_kept(reference: Reference) -> None:
    net, x = model(), torch.randn(2, 8)
    network = reference(extract(net, x))
    watched = network._watched
    assert watched is not None
    del net
    gc.collect()
    assert watched._module() is None
    network(x)


def test_looking_takes_a_small_share_of_the_time() -> None:
    net = model()
    watched = WatchedWeights(net, dict(net.named_parameters()))
    start = time.monotonic()
    assert watched.change() is None
    took = time.monotonic() - start
    weight(net).data.zero_()
    assert watched.change() is None  # too early to look again
    assert watched._next - start <= (took + 0.001) * (1 + 1 / SHARE)


def test_modules_that_are_no_plain_tensors_are_left_out() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = nn.ParameterDict({"sparse": nn.Parameter(torch.eye(3).to_sparse()), "empty": nn.Parameter(torch.zeros(0)), "meta": torch.zeros(2, device="meta")})
    watched = WatchedWeights(net, ["sparse", "empty", "meta", "missing"])
    assert not watched._weights and watched.change() is None


KINDS = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.uint8, torch.bool, torch.complex64, torch.complex128,
]


@pytest.mark.parametrize("dtype", KINDS)
def test_the_state_of_weights_of_any_dtype(dtype: torch.dtype) -> None:
    one, few, none, many = (torch.ones(shape).to(dtype) for shape in ((), (5, 7), (0,), (6, 8)))
    weights = [few, one, none, one.expand(9), many[::2, ::2]]
    state = WeightState(weights)
    assert state.is_of(weights)
    weights[0].zero_()
    assert not state.is_of(weights) and WeightState(weights).is_of(weights)
    state = WeightState(weights)
    if dtype is torch.complex128:  # its elements have more bits than are compared
        return
    for weight in (one, many):
        weight.data[...] = torch.zeros(()).to(dtype)
        assert not state.is_of(weights)
        state = WeightState(weights)


def test_the_state_of_weights_that_are_no_plain_memory() -> None:
    plain = torch.full((4,), torch.nan)
    weights = [plain, plain.to_sparse(), plain.to("meta"), plain.to(torch.complex64).conj(), torch._neg_view(plain)]
    state = WeightState(weights)
    assert state.is_of(weights)
    assert not state.is_of([plain.clone(), *weights[1:]])  # it lies elsewhere
