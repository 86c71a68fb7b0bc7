"""What cannot be planned without PyTorch is refused, and said."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import ansor
from ansor.errors import ModelError
from ansor.graph.library import library_kernels
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import extract
from ansor.networks.planning import Constants, Planning

pytestmark = pytest.mark.torch


class Cumulative(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.logcumsumexp(1)


def test_kernels_of_pytorch_are_refused(tmp_path: Path) -> None:
    extracted = extract(nn.Sequential(nn.Linear(6, 5), nn.Tanh()).eval(), torch.zeros(2, 6))
    network = CompiledNetwork(extracted, [kernel for kernel in library_kernels(extracted) if kernel is not None])
    with pytest.raises(ModelError, match=r"a network, but 1 step of 1 runs in PyTorch \(dense_2x6x5_bias_tanh\); compile it with library=False$"):
        Planning(network, Constants())
    for write in (network.save, network.export):
        with pytest.raises(ModelError, match=r"whose C source is not known; save one that ansor.compile returned$"):
            write(tmp_path / "net")


@pytest.mark.parametrize(("model", "inputs", "cure"), [
    (nn.LSTM(4, 8), (2, 3, 4), r"\(torch aten.lstm.input\); write the recurrence as a loop over nn.LSTMCell, which compiles to kernels \("),
    (nn.GRU(4, 8), (2, 3, 4), r"\(torch aten.gru.input\); write the recurrence as a loop over nn.GRUCell, which compiles to kernels \("),
    (nn.Linear(4, 2).half(), (1, 4), r"\(torch aten.linear.default\); use float32 \("),
    (Cumulative(), (2, 3), r"\(torch aten.logcumsumexp.default\); take these operators out of the model \("),
])  # fmt: skip
def test_the_cure_follows_the_reason(model: nn.Module, inputs: tuple[int, ...], cure: str, tmp_path: Path) -> None:
    with pytest.warns(ansor.AnsorWarning, match="in PyTorch"):
        network = ansor.compile(model.eval(), (torch.zeros(inputs, dtype=next(model.parameters(), torch.zeros(1)).dtype),), library=False, progress=False)
    with pytest.raises(ModelError, match=cure):
        network.save(tmp_path / "net")
