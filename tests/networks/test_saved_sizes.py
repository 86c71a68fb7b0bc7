"""Folders of networks for several sizes: constants once, complete or refused."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import ansor
from ansor.errors import AnsorError, MeasureError, ModelError
from ansor.measure.saved_kernel import sealed
from ansor.networks.batches import BatchedNetwork
from ansor.networks.loaded_sizes import LoadedSizes
from ansor.networks.saved_network import ABOUT, CONSTANTS_FILE

pytestmark = [pytest.mark.torch, pytest.mark.compiler]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[BatchedNetwork, Path]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(5000, 8), nn.Flatten(), nn.Linear(16, 3)).eval()
    net = ansor.compile_batches(model, torch.randint(0, 5000, (2, 2)), progress=False, library=False)
    return net, net.save(tmp_path_factory.mktemp("saved") / "batches")


def test_all_sizes_are_compiled_and_share_constants(saved: tuple[BatchedNetwork, Path]) -> None:
    net, folder = saved
    table = 5000 * 8 * 4
    assert sorted(net.networks) == [1, 2] == sorted(int(one.name) for one in folder.iterdir() if one.is_dir())
    assert table <= (folder / CONSTANTS_FILE).stat().st_size < 2 * table and all((folder / size / CONSTANTS_FILE).stat().st_size == 0 for size in "12")


def test_damaged_files_are_refused(saved: tuple[BatchedNetwork, Path], tmp_path: Path) -> None:
    chance = random.Random(0)
    names = [path.relative_to(saved[1]) for path in sorted(saved[1].rglob("*")) if path.is_file() and path.stat().st_size]
    for number in range(2 * len(names)):
        folder = Path(shutil.copytree(saved[1], tmp_path / str(number)))
        path = folder / names[number % len(names)]
        content = bytearray(path.read_bytes())
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path.unlink()
        if number < len(names):
            path.write_bytes(content)
        with pytest.raises(AnsorError, match=str(folder)):
            ansor.load(folder)


def test_a_network_of_another_save_is_refused(saved: tuple[BatchedNetwork, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(saved[1], tmp_path / "mixed"))
    shutil.rmtree(folder / "1")
    saved[0].networks[1].save(folder / "1")
    with pytest.raises(MeasureError, match="1/network.json is damaged, or was only partly saved; save the network again"):
        ansor.load(folder)


@pytest.mark.parametrize("key, value, why", [
    ("sizes", {}, "its sizes are not those of its networks"), ("paddings", {"1": 0}, "TypeError"), ("axes", [1], "networks for 1, 2 rows do not make up"),
    ("paddings", {size: {"keyword": "length", "ends": [[]], "length": int(size), "least": 1} for size in "12"}, "do not take the length"),
])  # fmt: skip
def test_networks_that_do_not_belong_together_are_refused(
    saved: tuple[BatchedNetwork, Path], tmp_path: Path, key: str, value: object, why: str
) -> None:  # fmt: skip
    folder = Path(shutil.copytree(saved[1], tmp_path / "changed"))
    about = json.loads((folder / ABOUT).read_text())
    (folder / ABOUT).write_text(json.dumps(sealed({**about, key: value})))
    with pytest.raises(MeasureError, match=f"{folder}: the saved network cannot be read .*{why}"):
        ansor.load(folder)


def test_rows_without_networks_are_refused(saved: tuple[BatchedNetwork, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(saved[1], tmp_path / "changed"))
    about = json.loads((folder / ABOUT).read_text())
    (folder / ABOUT).write_text(json.dumps(sealed({**about, "sizes": {"2": about["sizes"]["2"]}})))
    with pytest.raises(MeasureError, match="networks for 2 rows do not make up all numbers of rows"):
        ansor.load(folder)


def test_one_network_is_saved_over_several(saved: tuple[BatchedNetwork, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(saved[1], tmp_path / "over"))
    before = ansor.load(folder)
    saved[0].networks[2].save(folder)
    words = np.zeros((2, 2), np.int64)
    after = ansor.load(folder)
    assert isinstance(before, LoadedSizes) and not isinstance(after, LoadedSizes)
    assert np.array_equal(np.asarray(before(words)), np.asarray(after(words)))


def test_what_cannot_be_saved_is_found_before_more_is_compiled(tmp_path: Path) -> None:
    with pytest.warns(match="runs in PyTorch"):
        net = ansor.compile_batches(nn.Linear(4, 4).eval().half(), torch.rand(4, 4).half(), progress=False, library=False)
        with pytest.raises(ModelError, match="runs in PyTorch"):
            net.save(tmp_path / "half")
    assert list(net.networks) == [4]


def test_numbers_that_follow_from_the_rows_are_refused(tmp_path: Path) -> None:
    class Counted(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
            return x.relu(), 2 * x.shape[1]

    net = ansor.compile_batches(Counted(), torch.rand(2, 4), progress=False, library=False)
    assert isinstance(ansor.load(net.save(tmp_path / "same")), LoadedSizes)
    other = ansor.compile_batches(Counted(), torch.rand(2, 6), progress=False, library=False)
    net.networks[1] = other.networks[2]
    with pytest.raises(ModelError, match="asked to save networks for several sizes, but its networks take something else, or return other numbers"):
        net.save(tmp_path / "other")


def test_a_part_alone_is_refused(saved: tuple[BatchedNetwork, Path]) -> None:
    with pytest.raises(MeasureError, match="this network is one of several sizes, which share their constants; load the folder"):
        ansor.load(saved[1] / "2")


def test_steps_in_pytorch_are_refused(tmp_path: Path) -> None:
    with pytest.warns(match="runs in PyTorch"):
        net = ansor.compile_batches(nn.Linear(4, 4).eval().half(), torch.rand(2, 4).half(), progress=False, library=False)
        with pytest.raises(ModelError, match=r"1 step of 1 runs in PyTorch"):
            net.save(tmp_path / "half")
    assert not (tmp_path / "half").exists()
    with pytest.raises(ModelError, match=r"pickle a network of compile_batches, .*; write it with save\(\)"):
        pickle.dumps(net)


def test_a_folder_that_cannot_be_written_to(saved: tuple[BatchedNetwork, Path]) -> None:
    with pytest.raises(MeasureError, match="in /proc/no/1, which cannot be written to"):
        saved[0].save("/proc/no")
