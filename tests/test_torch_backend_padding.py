"""`torch.compile(backend="ansor", options={"pad": True})`: calls of any length share a few networks. Results are PyTorch's, and what is not padded is told."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as f
from torch.testing import assert_close

from ansor import torch_backend
from ansor.errors import AnsorWarning, ArgumentError
from ansor.graph.any_length import extract_lengths
from ansor.support import kept_data
from ansor.torch_backend import backend
from tests.networks.caches import with_compilers

pytestmark = [
    pytest.mark.compiler, pytest.mark.usefixtures("fresh_dynamo"), pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]  # fmt: skip


class Reader(torch.nn.Module):
    """Attention over words, with a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.value = torch.nn.Embedding(50, 16), torch.nn.Linear(16, 16)

    def forward(self, words: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.words(words)
        scores = (x @ x.transpose(1, 2)).masked_fill(mask[:, None] == 0, -1e9)
        found = scores.softmax(2) @ self.value(x)
        return found, found.mean(1)


class Counting(torch.nn.Module):
    """Writes to a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: torch.Tensor
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x.softmax(1) + self.calls


class Cosine(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.cos()


class Flipped(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flip(1).cumsum(1)


class Averaged(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1)


class Part(torch.nn.Module):
    """A part of the sequence, which may be all of it."""

    def __init__(self, chosen: slice) -> None:
        super().__init__()
        self.chosen = chosen

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.softmax(1)[:, self.chosen]


def apply(module: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = module(x)
    return found


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The lengths for which models were read."""
    made: list[list[int]] = []

    def counted(model: object, asked: Any, *rest: Any, **options: Any) -> object:
        made.append(list(asked))
        return extract_lengths(model, asked, *rest, **options)

    monkeypatch.setattr(torch_backend, "extract_lengths", counted)
    return made


def padded(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = torch.compile(function, backend=backend, options={"threads": 1, "library": False, "pad": True, **options}, dynamic=True)
    return found


def called(function: Callable[..., Any], *inputs: object) -> tuple[Any, list[str]]:
    """The results of a call without gradients, and the warnings during it."""
    with warnings.catch_warnings(record=True) as heard, torch.no_grad():
        warnings.simplefilter("always")
        found = function(*inputs)
    return found, [str(one.message) for one in heard if issubclass(one.category, AnsorWarning)]


def test_calls_of_any_length_share_networks(read: list[list[int]]) -> None:
    model = Reader().eval()
    network = padded(model)
    for length in (40, 33, 20, 19, 17, 36, 24, 5, 16):
        inputs = torch.randint(0, 50, (1, length)), (torch.rand(1, length) > 0.2).long()
        inputs[1][:, 0] = 1
        found, lines = called(network, *inputs)
        assert_close(found, called(model, *inputs)[0], rtol=1e-4, atol=1e-5)
        assert not lines
    assert [one[0] for one in read] == [40, 24, 16]


def test_networks_of_an_earlier_process(read: list[list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSOR_CACHE", str(with_compilers(tmp_path)))
    monkeypatch.setattr(kept_data, "ENABLED", True)
    model = Reader().eval()
    for length in (22, 21):
        torch.compiler.reset()
        inputs = torch.randint(0, 50, (1, length)), torch.ones(1, length, dtype=torch.long)
        found, lines = called(padded(model), *inputs)
        assert_close(found, called(model, *inputs)[0], rtol=1e-4, atol=1e-5)
        assert len(read) == 1 and not lines


def test_batches_are_not_padded_beside_another_extent(read: list[list[int]]) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.softmax(1).sum(0)

    network = padded(model)
    for rows, columns in ((4, 30), (4, 31), (20, 20), (3, 7)):
        x = torch.randn(rows, columns)
        found, lines = called(network, x)
        assert_close(found, model(x))
        assert not lines
    assert [one[0] for one in read] == [32, 24, 16]


def test_batches_alone_are_padded(read: list[list[int]]) -> None:
    network = padded(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1)))
    for rows in (20, 18):
        x = torch.randn(rows, 3, 6, 6)
        torch._dynamo.mark_static(x, 2)
        torch._dynamo.mark_static(x, 3)
        torch._dynamo.mark_static(x, 1)
        found, lines = called(network, x)
        assert found.shape == (rows, 4, 1, 1) and not lines
    assert [one[0] for one in read] == [24]


def test_extents_that_differ_are_not_padded(read: list[list[int]]) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.softmax(1).softmax(2)

    network = padded(model)
    for rows, columns in ((20, 30), (20, 20), (19, 19), (7, 30)):
        x = torch.randn(1, rows, columns)
        assert_close(called(network, x)[0], model(x))
    assert [one[0] for one in read] == [24]


@pytest.mark.parametrize(
    ("function", "why"),
    [(lambda x: x.flip(1).cumsum(1), "it computes a constant"), (lambda x: (x.softmax(1) @ x.mT).mT, "in another order in memory")],
)
def test_what_cannot_be_padded_has_a_network_for_each_shape(function: Callable[[torch.Tensor], torch.Tensor], why: str) -> None:
    network, heard = padded(function), list[str]()
    for length in (30, 20, 25):
        x = torch.randn(3, length)
        found, lines = called(network, x)
        assert_close(found, function(x), rtol=1e-4, atol=1e-5)
        heard += lines
    assert len(heard) == 1 and "calls are not padded, so each shape has its own network" in heard[0] and why in heard[0]


def test_writes_happen_once() -> None:
    network, model = padded(Counting()), Counting()
    for length in (30, 20, 25):
        x = torch.randn(2, length)
        assert_close(called(network, x)[0], called(model, x)[0])


def test_shorter_calls_than_the_model_reads_run_in_pytorch(read: list[list[int]]) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.softmax(1)[:, -6:].sum(1)

    network = padded(model)
    for length in (16, 7, 6, 5):
        x = torch.randn(2, length)
        found, lines = called(network, x)
        assert_close(found, model(x))
        assert not lines
    assert 16 in [one[0] for one in read]


def test_static_graphs_are_compiled_as_they_are(read: list[list[int]]) -> None:
    network = torch.compile(torch.sin, backend=backend, options={"threads": 1, "pad": True}, dynamic=False)
    found, lines = called(network, torch.ones(20))
    assert_close(found, torch.ones(20).sin())
    assert not read and not lines


def test_what_varies_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSOR_CACHE", str(with_compilers(tmp_path)))
    monkeypatch.setattr(kept_data, "ENABLED", True)
    for axis, shape in ((1, (1, 23, 24)), (2, (1, 24, 23))):
        torch.compiler.reset()
        x = torch.randn(shape)
        torch._dynamo.mark_dynamic(x, axis)
        network = torch.compile(Cosine(), backend=backend, options={"threads": 1, "library": False, "pad": True})
        assert_close(called(network, x)[0], x.cos())


def test_padded_calls_that_would_fail_have_networks_of_their_own() -> None:
    table = torch.randn(50, 4)

    def model(mask: torch.Tensor) -> torch.Tensor:
        return f.embedding(mask.cumsum(1) - 1, table)

    network, mask = padded(model), torch.ones(1, 49, dtype=torch.long)
    assert_close(called(network, mask)[0], model(mask))


def test_networks_that_are_padded_and_not_are_told_apart() -> None:
    network = torch.compile(apply, backend=backend, options={"threads": 1, "library": False, "pad": True})
    for module in (Part(slice(None)), Part(slice(None, None, 2)), Part(slice(None))):
        for length in (17, 24, 20):
            x = torch.randn(2, length)
            torch._dynamo.mark_dynamic(x, 1)
            assert_close(called(network, module, x)[0], module(x), rtol=1e-4, atol=1e-5)


def test_threads_that_find_out_together_that_calls_cannot_be_padded() -> None:
    network = padded(Flipped())
    called(network, torch.randn(1, 30))
    torch.compiler.reset()
    network = padded(Flipped())
    inputs = [torch.randn(1, length) for length in (17, 18, 19, 20)]

    def differs(x: torch.Tensor) -> float:
        with torch.no_grad():
            return float((network(x) - Flipped()(x)).abs().max())

    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("ignore")
        assert max(pool.map(differs, inputs)) < 1e-4


def test_computed_indices_beyond_the_end_need_not_be_indices() -> None:
    table = torch.randn(50, 4)

    def model(mask: torch.Tensor) -> torch.Tensor:
        return f.embedding(mask.sum(1, keepdim=True) - mask.cumsum(1), table).softmax(1)

    network = padded(model)
    for length in (30, 20, 17):
        mask = torch.ones(1, length, dtype=torch.long)
        found, lines = called(network, mask)
        assert_close(found, model(mask))
        assert not lines


def test_bfloat16_means_are_divided_by_the_exact_length() -> None:
    x = torch.randn(2, 301, dtype=torch.bfloat16)
    found, lines = called(padded(Averaged()), x)
    assert not lines
    assert_close(found, Averaged()(x), rtol=1e-2, atol=1e-3)


def test_options_that_do_not_fit() -> None:
    for options, why in (({"pad": 1}, "pad=1"), ({"pad": True, "tune": "background"}, "'background' and pad of the backend")):
        with pytest.raises(ArgumentError, match=why):
            backend(torch.fx.symbolic_trace(torch.nn.ReLU()), [torch.ones(2)], options=options)
