"""A network as a service has it: saved, loaded without PyTorch and built again for this processor, and asked for any number of rows, also wrongly."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import ansor
from ansor.errors import AnsorError, ModelError, OutOfRangeError
from ansor.networks import loaded_network

pytestmark = [pytest.mark.compiler, pytest.mark.torch]
ONE = "cpu -threads=1"


class Words(nn.Module):
    """Looks up words, adds what is beside them, and ranks the sum."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.rank = nn.Embedding(20, 8), nn.Linear(8, 3)

    def forward(self, words: torch.Tensor, beside: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.rank(torch.relu(self.table(words).sum(1) + beside))
        return found


def is_close(found: object, wanted: torch.Tensor) -> bool:
    return np.allclose(np.asarray(found), wanted.numpy(), rtol=1e-4, atol=1e-5)


def requests(rows: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 20, (rows, 5), generator=generator), torch.randn(rows, 8, generator=generator)


@pytest.fixture(scope="module")
def model() -> nn.Module:
    return Words().eval()


@pytest.fixture(scope="module")
def saved(model: nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    network = ansor.compile(model, requests(4), ONE, library=False)
    return Path(network.save(tmp_path_factory.mktemp("saved") / "net"))


def test_a_loaded_network_answers_many_at_once(model: nn.Module, saved: Path) -> None:
    network = ansor.load(saved)
    several = [requests(4, seed) for seed in range(16)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: network(one[0].numpy(), beside=one[1].numpy()), several))
    with torch.no_grad():
        for one, answer in zip(several, found, strict=True):
            assert is_close(answer, model(*one))


def test_on_another_processor_it_is_built_once_and_right(model: nn.Module, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_network, "processor_identity", lambda: "a processor of another kind")
    one = requests(4, 3)
    first, again = ansor.load(saved), ansor.load(saved)
    with torch.no_grad():
        assert is_close(first(*(given.numpy() for given in one)), model(*one))
    found, same = (np.asarray(network(*(given.numpy() for given in one))) for network in (first, again))
    assert np.array_equal(found, same)


def test_wrong_requests_are_answered_with_a_sentence_and_right_ones_after_them(model: nn.Module, saved: Path) -> None:
    network = ansor.load(saved)
    words, beside = (one.numpy() for one in requests(4))
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: network(words), "the network was called with 1 array by position; it takes words, beside, in this order or by name"),
        (lambda: network(words, other=beside), "and other by name; it takes words, beside"),
        (lambda: network(words, beside.tolist()), "beside is a list; "),
        (lambda: network(words, beside.astype("float64")), "beside is an array of float64; .*convert it with .astype"),
        (lambda: network(words, beside[:3]), r"beside is an array of shape \(3, 8\); "),
        (lambda: pickle.dumps(network), "asked to copy or pickle a loaded network"),
    ]
    for ask, sentence in wrong:
        with pytest.raises(AnsorError, match=sentence):
            ask()
    beyond = words.copy()
    beyond[2, 3] = 20
    with pytest.raises(OutOfRangeError, match=r"20.*of a table of 20 rows"):
        network(beyond, beside)
    with torch.no_grad():
        assert is_close(network(words, beside), model(*requests(4)))


def test_any_number_of_rows_and_what_has_none(model: nn.Module) -> None:
    network = ansor.compile_batches(model, requests(4), ONE, library=False)
    with torch.no_grad():
        for rows in (1, 3, 4, 11):
            found = network(*requests(rows, rows))
            torch.testing.assert_close(torch.as_tensor(found), model(*requests(rows, rows)), rtol=1e-4, atol=1e-5)
    assert str(network) == "BatchedNetwork(up to 4 rows at once; compiled for 4, 2, 1)"
    arrays = network(*(one.numpy() for one in requests(7)))
    assert isinstance(arrays, np.ndarray) and arrays.shape == (7, 3)
    words, beside = requests(4)
    with pytest.raises(ModelError, match="called with 0 rows; give at least one"):
        network(words[:0], beside[:0])
    with pytest.raises(ModelError, match=r"the inputs of a call have the shapes \(4, 5\), \(2, 8\)"):
        network(words, beside[:2])


class Of(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


ROWS = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("given", "rows", "sentence"),
    [
        (Of(lambda x: x - x.mean(0)), ROWS, "whose results for a row depend on the other rows; compile it for one size"),
        (Of(lambda x: x.sum(1).sum()), ROWS, r"this model's results have the shapes \(\) for 4 rows and \(\) for one"),
        (Of(lambda x: (x, len(x))), ROWS, "this model's results have 4 for 4 rows, and 1 for one"),
        (Of(lambda x: x.reshape(4, 6)), ROWS, "of a model that fails with one row or with 4: "),
        (Of(lambda x: tuple(x)), ROWS, "this model gives 4 and 1"),
        (Of(torch.relu), ROWS[:1], "with example inputs of one row"),
        (Of(torch.relu), torch.ones(4, 6, dtype=torch.int64), "whose rows are all equal"),
        (torch.relu, ROWS, "give a PyTorch module"),
    ],
)
def test_what_has_no_rows_is_refused(given: Any, rows: torch.Tensor, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        ansor.compile_batches(given, (rows,), ONE, library=False)
