"""Networks that are saved and loaded: the same bytes, without PyTorch, wherever the folder is; what is damaged is refused with a sentence."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import ansor
from ansor.errors import AnsorError, ArgumentError, ArgumentTypeError, MeasureError, ModelError
from ansor.measure.saved_kernel import sealed
from ansor.networks import loaded_network
from ansor.networks.saved_network import ABOUT

pytestmark = [pytest.mark.torch, pytest.mark.compiler]
Changed = Callable[[dict[str, object]], object]


class Residual(nn.Module):
    """Convolutions around a shortcut, pooling, a classifier; several results."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16))
        self.classes = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> dict[str, object]:
        x = self.first(x)
        y = torch.relu(self.second(x) + x)
        return {"classes": self.classes(y.mean((2, 3))), "others": (y, [x.reshape(-1)[:4], None, 3])}


def _words(words: torch.Tensor, table: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return nn.functional.embedding(words, table), words * 2


def _compiled(model: object, inputs: object, threads: int = 1) -> ansor.CompiledNetwork:
    return ansor.compile(model, inputs, f"cpu -threads={threads}", library=False)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def residual(tmp_path_factory: pytest.TempPathFactory) -> tuple[ansor.CompiledNetwork, Path]:
    torch.manual_seed(0)
    network = _compiled(Residual().eval(), (torch.zeros(1, 3, 8, 8),))
    return network, network.save(tmp_path_factory.mktemp("saved") / "residual")


def _loaded(folder: Path) -> ansor.LoadedNetwork:
    found = ansor.load(folder)
    assert isinstance(found, ansor.LoadedNetwork)
    return found


def _copied(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "copied"))


def _rewritten(folder: Path, change: Changed) -> None:
    """network.json with a change, and sealed again."""
    about = json.loads((folder / ABOUT).read_text())
    change(about)
    (folder / ABOUT).write_text(json.dumps(sealed(about)))


def _same_bytes(one: object, other: object) -> bool:
    if isinstance(one, dict):
        return isinstance(other, dict) and list(one) == list(other) and all(_same_bytes(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)):
        return type(one) is type(other) and all(map(_same_bytes, one, other))
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    return one == other


IMAGE = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bytes_with_several_results(threads: int, tmp_path: Path) -> None:
    side = {1: 8, 2: 48}[threads]  # large enough for threads to pay
    image = np.random.default_rng(0).standard_normal((1, 3, side, side)).astype(np.float32)
    network = _compiled(Residual().eval(), (torch.zeros(image.shape),), threads)
    loaded = _loaded(network.save(tmp_path / "saved"))
    assert loaded.plan.threads == threads
    for _ in range(2):  # a second run finds what the first left in the arena
        assert _same_bytes(network(image), loaded(image))


def test_a_text_model(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=100)
    words = np.arange(8, dtype=np.int64).reshape(1, 8)
    network = _compiled(transformers.BertModel(config).eval(), {"input_ids": torch.from_numpy(words)})
    loaded = _loaded(network.save(tmp_path / "bert"))
    wanted, found = network(input_ids=words), loaded(input_ids=words)
    assert isinstance(found, dict) and _same_bytes(dict(wanted), found)  # type: ignore[call-overload]
    assert _same_bytes(found, loaded(words))


def test_integers_and_indices_out_of_range(tmp_path: Path) -> None:
    words, table = np.array([[0, 6, 3]]), np.arange(28, dtype=np.float32).reshape(7, 4)
    network = _compiled(_words, (torch.from_numpy(words), torch.from_numpy(table)))
    loaded = _loaded(network.save(tmp_path / "words"))
    assert _same_bytes(network(words, table), loaded(words, table=table))
    for wrong in (7, -1):
        for one in (network, loaded):
            with pytest.raises(IndexError, match=rf"looks up row {wrong} of a table of 7 rows; indices have to be from 0 to 6"):
                one(np.array([[0, wrong, 3]]), table)
    assert _same_bytes(network(words, table), loaded(words, table))


def test_results_may_be_inputs_or_constants(tmp_path: Path) -> None:
    network = _compiled(lambda x: (x, torch.arange(3), x.reshape(4)), (torch.zeros(2, 2),))
    given = np.arange(4, dtype=np.float32).reshape(2, 2)
    assert _same_bytes(network(given), ansor.load(network.save(tmp_path / "saved"))(given))


def test_no_torch_in_the_process_and_the_folder_moved(residual: tuple[ansor.CompiledNetwork, Path], tmp_path: Path) -> None:
    network, saved = residual
    folder = _copied(saved, tmp_path)
    np.save(tmp_path / "image.npy", IMAGE)
    code = ("import sys, ansor, numpy\n"
            "found = ansor.load('copied')(numpy.load('image.npy'))['classes']\n"
            "assert 'torch' not in sys.modules\n"
            "sys.stdout.buffer.write(found.tobytes())")  # fmt: skip
    assert folder.is_dir()
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True).stdout
    assert found == network(IMAGE)["classes"].tobytes()  # type: ignore[index]


def test_constants_are_kept_once_and_mapped_read_only(residual: tuple[ansor.CompiledNetwork, Path]) -> None:
    _, saved = residual
    loaded = _loaded(saved)
    file = saved / "constants.bin"
    assert loaded.plan.room.constants == file.stat().st_size
    constants = {place.offset for call in loaded.plan.calls for place in call.places if place.memory == "constants"}
    assert len(constants) == 6 and all(offset % 64 == 0 for offset in constants)  # weights and biases, norms folded
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(str(file.resolve()))]
    assert lines and all(line[1].startswith("r--") for line in lines)


def test_equal_constants_share_a_place(tmp_path: Path) -> None:
    weight = torch.arange(16, dtype=torch.float32).reshape(4, 4)
    other = weight.clone()
    loaded = _loaded(_compiled(lambda x: torch.relu(x @ weight) @ other, (torch.zeros(4, 4),)).save(tmp_path / "saved"))
    assert loaded.plan.room.constants == weight.nbytes


def test_loads_and_calls_side_by_side(residual: tuple[ansor.CompiledNetwork, Path]) -> None:
    network, saved = residual
    wanted = network(IMAGE)
    wrong: list[ansor.LoadedNetwork] = []
    shared = _loaded(saved)

    def use() -> None:
        own = _loaded(saved)
        wrong.extend(one for _ in range(5) for one in (own, shared) if not _same_bytes(wanted, one(IMAGE)))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_network_is_saved_over_one_that_is_in_use(residual: tuple[ansor.CompiledNetwork, Path], tmp_path: Path) -> None:
    network, saved = residual
    folder = _copied(saved, tmp_path)
    loaded = _loaded(folder)
    _compiled(nn.Linear(4, 4).eval(), (torch.zeros(1, 4),)).save(folder)
    assert _same_bytes(network(IMAGE), loaded(IMAGE))
    assert isinstance(ansor.load(folder)(np.zeros((1, 4), np.float32)), np.ndarray)


def test_wrong_arguments(residual: tuple[ansor.CompiledNetwork, Path]) -> None:
    loaded = _loaded(residual[1])
    with pytest.raises(ArgumentTypeError, match=r"^x is an array of float64; the network takes float32 of shape \(1, 3, 8, 8\): convert it with .astype"):
        loaded(IMAGE.astype(np.float64))
    with pytest.raises(ArgumentError, match=r"^x is an array of shape \(1, 3, 8, 7\); the network takes float32 of shape \(1, 3, 8, 8\)$"):
        loaded(IMAGE[..., 1:])
    with pytest.raises(ArgumentTypeError, match=r"^x is a Tensor; the network takes .*, as a NumPy array without a mask$"):
        loaded(torch.from_numpy(IMAGE))  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match=r"^the network was called with 2 arrays by position; it takes x, in this order or by name$"):
        loaded(IMAGE, IMAGE)
    with pytest.raises(ArgumentTypeError, match=r"called with 0 arrays by position and y by name; it takes x"):
        loaded(y=IMAGE)
    with pytest.raises(ModelError, match="asked to copy or pickle a loaded network"):
        pickle.dumps(loaded)


def test_steps_in_pytorch_are_refused(tmp_path: Path) -> None:
    with pytest.warns(match="runs in PyTorch"):
        network = _compiled(nn.Linear(4, 4).eval().half(), (torch.zeros(2, 4).half(),))
    with pytest.raises(ModelError, match=r"1 step of 1 runs in PyTorch \(torch aten.linear.default\); use float32"):
        network.save(tmp_path / "half")
    assert not (tmp_path / "half").exists()


def test_another_version_is_refused(residual: tuple[ansor.CompiledNetwork, Path], tmp_path: Path) -> None:
    folder = _copied(residual[1], tmp_path)
    _rewritten(folder, lambda about: about.update(version=99))
    with pytest.raises(MeasureError, match=r"a network in format version 99, but this package reads 1; save it again$"):
        ansor.load(folder)


def test_another_processor_builds_the_c_again(residual: tuple[ansor.CompiledNetwork, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network, saved = residual
    folder = _copied(saved, tmp_path)
    _rewritten(folder, lambda about: about.update(processor="another"))
    assert _same_bytes(network(IMAGE), ansor.load(folder)(IMAGE))
    monkeypatch.setattr(loaded_network, "built", None)  # it is kept: nothing is built a second time
    assert _same_bytes(network(IMAGE), ansor.load(folder)(IMAGE))


def test_c_that_this_processor_does_not_run_is_refused(residual: tuple[ansor.CompiledNetwork, Path], tmp_path: Path) -> None:
    folder = _copied(residual[1], tmp_path)
    _rewritten(folder, lambda about: about.update(processor="another", mcpu="no-such-processor"))
    with pytest.raises(MeasureError, match=r"the network is for another, and its C does not build for this processor, .*; compile and save it here$"):
        ansor.load(folder)


def test_what_is_no_saved_network(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match=r"no saved network can be read there: .*; write one with save\(\) of a compiled network"):
        ansor.load(tmp_path / "nowhere")
    for text in ("", "[]", "{}", "null", "{" * 2000, '{"version": 1}'):
        (tmp_path / ABOUT).write_text(text)
        with pytest.raises(MeasureError, match="the saved network cannot be read"):
            ansor.load(tmp_path)


def test_damaged_files_are_refused_whatever_the_damage(residual: tuple[ansor.CompiledNetwork, Path], tmp_path: Path) -> None:
    chance = random.Random(0)
    names = [path.relative_to(residual[1]) for path in sorted(residual[1].rglob("*")) if path.is_file()]
    assert len(names) > 6
    for number in range(120):
        folder = Path(shutil.copytree(residual[1], tmp_path / str(number)))
        path = folder / names[number % len(names)]
        content = bytearray(path.read_bytes())
        place = chance.randrange(len(content))
        kind = chance.choice(("cut", "changed", "longer", "gone"))
        if kind == "gone":
            path.unlink()
        else:
            content[place] ^= 1 << chance.randrange(8)
            path.write_bytes(content[:place] if kind == "cut" else content + b"x" if kind == "longer" else content)
        with pytest.raises(AnsorError, match=str(folder)) as caught:
            ansor.load(folder)
        assert "\n" not in str(caught.value), kind
        shutil.rmtree(folder)


@pytest.mark.parametrize("change", [
    lambda plan: plan["room"].update(arena=64), lambda plan: plan["inputs"][0]["place"].update(offset=1 << 40), lambda plan: plan["outputs"][0].pop("shape"),
    lambda plan: plan["inputs"][0].update(dtype="no"), lambda plan: plan["room"].update(constants=1), lambda plan: plan.update(calls=[{}]),
    lambda plan: plan["inputs"][0]["place"].update(memory="disk"), lambda plan: plan["inputs"][0]["place"].update(offset=-64),
])  # fmt: skip
def test_plans_that_do_not_fit_are_refused(residual: tuple[ansor.CompiledNetwork, Path], tmp_path: Path, change: Changed) -> None:
    folder = _copied(residual[1], tmp_path)
    _rewritten(folder, lambda about: change(about["plan"]))  # type: ignore[arg-type]
    with pytest.raises(MeasureError, match=str(folder)):
        ansor.load(folder)


def test_a_folder_that_cannot_be_written_to(residual: tuple[ansor.CompiledNetwork, Path]) -> None:
    with pytest.raises(MeasureError, match="asked to save a network in /proc/no, which cannot be written to"):
        residual[0].save("/proc/no")


def test_a_forked_child_calls_at_once(residual: tuple[ansor.CompiledNetwork, Path]) -> None:
    network, saved = residual
    loaded, wanted = ansor.load(saved), network(IMAGE)
    child = os.fork()
    if child == 0:
        os._exit(0 if _same_bytes(wanted, loaded(IMAGE)) else 1)
    assert os.waitpid(child, 0)[1] == 0
