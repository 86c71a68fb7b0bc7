"""Models with other operators than those of the package: from onnxruntime's quantiser and from PyTorch, run by the C code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from ansor.errors import ModelError
from ansor.integer.compiling import compiled
from ansor.integer.from_onnx import from_onnx
from ansor.integer.from_torch import from_torch
from ansor.integer.host import HostNetwork
from ansor.integer.network import IntegerNetwork
from ansor.integer.reference import run
from ansor.run.keywords import RunOptions
from ansor.targets.base import parse_target
from tests.integer.models import SHAPE, quantised_file, samples

pytestmark = [pytest.mark.compiler, pytest.mark.torch]


class Joins(nn.Module):
    """Tensors of different scales behind each other; two outputs; a mean that drops its dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other, self.both = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(3, 4, 1), nn.Conv2d(12, 6, 3, stride=2)
        self.last = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        joined = self.both(torch.cat([torch.relu(self.one(x)), self.other(x)], 1))
        return self.last(joined.mean((2, 3))), torch.relu(joined)


class Flat(nn.Sequential):
    """Flattened before anything else: files quantise the flat input."""

    def __init__(self) -> None:
        super().__init__(nn.Flatten(), nn.Linear(3 * 12 * 9, 8), nn.Tanh(), nn.Linear(8, 7), nn.Sigmoid())


class Differs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.one(x) - torch.relu(self.other(x))
        return found


def right(network: IntegerNetwork, machine: str = "cpu -mcpu=x86-64 -vector-bytes=4 -mattr=-sse2") -> bool:
    """Whether the C code gives every byte of the reference."""
    asked, target = RunOptions.of({"trials": 0}), parse_target(machine)
    with asked.audience.reporter(target) as reporter:
        host = HostNetwork(compiled(network, target, asked, reporter))
    generator = np.random.default_rng(0)
    inputs = {name: generator.integers(-128, 128, network.tensors[name].shape).astype(np.int8) for name in network.inputs}
    wanted, found = run(network, inputs), host.run(inputs)
    return all(np.array_equal(found[name], wanted[name]) for name in network.outputs)


@pytest.mark.parametrize("model", [Joins, Flat, Differs])
def test_from_torch(model: type[nn.Module]) -> None:
    torch.manual_seed(0)
    made, inputs = model().eval(), samples()
    network = from_torch(made, inputs, "model")
    with torch.no_grad():
        wanted = made(inputs[0])
    found = run(network, {network.inputs[0]: network.tensors[network.inputs[0]].stored(inputs[0].numpy())})
    for name, one in zip(network.outputs, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        read, scale = network.tensors[name].read(found[name]), network.tensors[name].quantisation.scale
        assert np.abs(read - one.numpy()).max() <= 6 * scale
    assert right(network) and right(network, "cpu")


def _as_written(file: Path, x: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """What ONNX Runtime computes without its integer kernels, which on x86 without VNNI saturate sums of two products at 16 bits: not what the file says."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    found: list[NDArray[np.float32]] = onnxruntime.InferenceSession(str(file), options).run(None, {"x": x})
    return found


@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("model", [Joins, Flat])
def test_from_onnxruntime(model: type[nn.Module], unsigned: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    file = quantised_file(model().eval(), tmp_path, unsigned=unsigned, per_channel=not unsigned)
    network, x = from_onnx(file), samples(9)[8].numpy()
    wanted = _as_written(file, x)
    found = run(network, {network.inputs[0]: network.tensors[network.inputs[0]].stored(x)})
    for name, one in zip(network.outputs, wanted, strict=True):
        assert np.abs(network.tensors[name].read(found[name]) - one).max() <= 1.01 * network.tensors[name].quantisation.scale
    assert right(network)


def test_a_softmax_inside_is_refused(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 12 * 9, 8), nn.Softmax(1), nn.Linear(8, 2)).eval()
    with pytest.raises(ModelError, match="softmax"):
        from_onnx(quantised_file(model, tmp_path, shape=SHAPE))
    with pytest.raises(ModelError, match="softmax"):
        from_torch(model, samples())
