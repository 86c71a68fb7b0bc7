"""Saved networks for several sizes of their inputs: the same bytes as before, without PyTorch; what does not fit is refused with a sentence."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import ansor
from ansor.errors import ArgumentError, ArgumentTypeError, ModelError, OutOfRangeError
from ansor.networks import loaded_network
from ansor.networks.batches import BatchedNetwork
from ansor.networks.lengths import AnyLengthNetwork
from ansor.networks.loaded_sizes import LoadedBatches, LoadedLengths, LoadedSizes
from ansor.networks.saved_network import SavedNetwork

pytestmark = [pytest.mark.torch, pytest.mark.compiler]


class Reader(nn.Module):
    """Words with a fixed bias; results that follow the length in one dimension, in two, and not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.value = nn.Embedding(50, 16), nn.Linear(16, 16)

    def forward(self, words: torch.Tensor, bias: torch.Tensor) -> dict[str, object]:
        x = self.words(words) + bias
        weights = (x @ x.transpose(1, 2)).softmax(2)
        return {"states": weights @ self.value(x), "others": (weights, [x.mean(1), 3, x[:, 3:5].mean()])}


class Pair(nn.Module):
    """Two inputs with rows, and two results."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.first(x) + y, y * 2


BIAS = np.linspace(0, 1, 16, dtype=np.float32)


@pytest.fixture(scope="module")
def lengths(tmp_path_factory: pytest.TempPathFactory) -> tuple[AnyLengthNetwork, Path]:
    torch.manual_seed(0)
    given = torch.randint(0, 50, (2, 24)), torch.from_numpy(BIAS)
    net = ansor.compile_lengths(Reader().eval(), given, "cpu -threads=1", progress=False, library=False, lengths=[8])
    return net, net.save(tmp_path_factory.mktemp("saved") / "lengths")


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> tuple[BatchedNetwork, Path]:
    torch.manual_seed(0)
    net = ansor.compile_batches(Pair().eval(), (torch.rand(6, 8), torch.rand(6, 4)), "cpu -threads=1", progress=False, library=False)
    return net, net.save(tmp_path_factory.mktemp("saved") / "batches")


def loaded(saved: tuple[object, Path]) -> LoadedSizes:
    found = ansor.load(saved[1])
    assert isinstance(found, LoadedSizes)
    return found


def arrays(results: object) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    if isinstance(results, dict):
        return [one for held in results.values() for one in arrays(held)]
    return [one for held in results for one in arrays(held)] if isinstance(results, (tuple, list)) else [np.asarray(results)]


def assert_same(found: object, wanted: object) -> None:
    assert type(found) is type(wanted)
    for one, other in zip(arrays(found), arrays(wanted), strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def test_every_length(lengths: tuple[AnyLengthNetwork, Path]) -> None:
    net, found = lengths[0], loaded(lengths)
    assert isinstance(found, LoadedLengths) and repr(found) == "LoadedLengths(lengths up to 24; networks for 8, 24)"
    assert [(one.name, one.shape) for one in found.inputs] == [("words", (2, 24)), ("bias", (16,))]
    for length in (24, 23, 9, 8, 7, 5):
        words = np.random.default_rng(length).integers(0, 50, (2, length))
        assert_same(found(words, bias=BIAS), net(words, BIAS))


def test_every_number_of_rows(batches: tuple[BatchedNetwork, Path]) -> None:
    net, found = batches[0], loaded(batches)
    assert isinstance(found, LoadedBatches) and repr(found) == "LoadedBatches(up to 6 rows at once)" and found.sizes == (1, 2, 4, 6)
    for rows in (1, 5, 6, 13):
        x, y = (np.random.default_rng(rows).random((rows, width), np.float32) for width in (8, 4))
        assert_same(found(x, y=y), net(x, y))


def test_without_pytorch(lengths: tuple[AnyLengthNetwork, Path], tmp_path: Path) -> None:
    words = np.arange(10).reshape(2, 5)
    np.savez(tmp_path / "inputs.npz", words=words, bias=BIAS)
    program = f"""
import sys, ansor, numpy
found = ansor.load({str(lengths[1])!r})(**numpy.load({str(tmp_path / "inputs.npz")!r}))
assert "torch" not in sys.modules
numpy.save({str(tmp_path / "states.npy")!r}, found["states"])
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    wanted = lengths[0](words, BIAS)
    assert isinstance(wanted, dict)
    assert_same(np.load(tmp_path / "states.npy"), wanted["states"])


def test_lengths_that_do_not_fit(lengths: tuple[AnyLengthNetwork, Path]) -> None:
    found, words = loaded(lengths), np.zeros((2, 5), np.int64)
    with pytest.raises(ArgumentError, match="with inputs of the length 4, but the model needs at least 5"):
        found(words[:, :4], BIAS)
    for length in (0, 25):
        with pytest.raises(ArgumentError, match=f"called with inputs of the length {length}; it takes 1 to 24"):
            found(np.zeros((2, length), np.int64), BIAS)
    with pytest.raises(ArgumentError, match=r"words is an array of shape \(3, 5\); the network takes int64 of shape \(2, any\)"):
        found(np.zeros((3, 5), np.int64), BIAS)
    with pytest.raises(ArgumentError, match=r"bias is an array of shape \(15,\); the network takes float32 of shape \(16,\)"):
        found(words, BIAS[1:])
    with pytest.raises(ArgumentTypeError, match=r"bias is a MaskedArray; the network takes float32 of shape \(16,\), as a NumPy array without a mask"):
        found(words, np.ma.masked_array(BIAS, BIAS > 0))
    with pytest.raises(ArgumentTypeError, match="words is an array of int32; the network takes int64"):
        found(words.astype(np.int32), BIAS)
    with pytest.raises(ArgumentTypeError, match="words is a Tensor; the network takes int64"):
        found(torch.from_numpy(words), BIAS)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="called with 1 array by position; it takes words, bias"):
        found(words)
    with pytest.raises(OutOfRangeError, match="looks up row 50 of a table of 50 rows"):
        found(words + 50, BIAS)
    with pytest.raises(ModelError, match="asked to copy or pickle a loaded network"):
        pickle.dumps(found)


def test_rows_that_do_not_fit(batches: tuple[BatchedNetwork, Path]) -> None:
    found = loaded(batches)
    with pytest.raises(ArgumentTypeError, match=r"x is a MaskedArray; the network takes float32 of shape \(any, 8\)"):
        found(np.ma.masked_array(np.zeros((3, 8), np.float32), True), np.zeros((3, 4), np.float32))
    with pytest.raises(ArgumentError, match="called with 0 rows; give at least one"):
        found(np.zeros((0, 8), np.float32), np.zeros((0, 4), np.float32))
    with pytest.raises(ArgumentError, match=r"inputs of different sizes, 3 \(x\) and 2 \(y\); give equal ones"):
        found(np.zeros((3, 8), np.float32), np.zeros((2, 4), np.float32))


def test_another_processor_builds_each_size_when_it_is_needed(batches: tuple[BatchedNetwork, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Path] = []

    def watched(saved: SavedNetwork, place: Path) -> Path:
        built.append(place)
        return rebuilt(saved, place)

    rebuilt = loaded_network._rebuilt
    monkeypatch.setattr(loaded_network, "_rebuilt", watched)
    monkeypatch.setattr(loaded_network, "processor_identity", lambda: "a processor of another kind")
    found = loaded(batches)
    assert [place.name for place in built] == ["6"]
    x, y = np.ones((7, 8), np.float32), np.ones((7, 4), np.float32)
    assert_same(found(x, y), batches[0](x, y))
    assert [place.name for place in built] == ["6", "1"]


def test_inputs_that_vary_in_different_dimensions(tmp_path: Path) -> None:
    class Weighed(nn.Module):
        def forward(self, weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return weights @ x.relu()

    given = torch.rand(3, 12), torch.rand(12, 4)
    net = ansor.compile_lengths(Weighed(), given, dimension={"x": 0, "weights": 1}, lengths=[12], progress=False, library=False)
    found = ansor.load(net.save(tmp_path / "saved"))
    x, weights = (np.random.default_rng(0).random(shape, np.float32) for shape in ((7, 4), (3, 7)))
    assert_same(found(x=x, weights=weights), net(weights, x))
