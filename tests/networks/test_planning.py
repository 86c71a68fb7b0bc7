"""What cannot be planned without PyTorch is refused, and said."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from ansor.errors import ModelError
from ansor.graph.library import library_kernels
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import extract
from ansor.networks.planning import Constants, Planning

pytestmark = pytest.mark.torch


def test_kernels_of_pytorch_are_refused(tmp_path: Path) -> None:
    extracted = extract(nn.Sequential(nn.Linear(6, 5), nn.Tanh()).eval(), torch.zeros(2, 6))
    network = CompiledNetwork(extracted, [kernel for kernel in library_kernels(extracted) if kernel is not None])
    with pytest.raises(ModelError, match=r"a network, but 1 step of 1 runs in PyTorch \(dense_2x6x5_bias_tanh\); compile it with library=False$"):
        Planning(network, Constants())
    for write in (network.save, network.export):
        with pytest.raises(ModelError, match=r"whose C source is not known; save one that ansor.compile returned$"):
            write(tmp_path / "net")
