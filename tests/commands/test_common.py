"""A network compared with its model in PyTorch."""

from __future__ import annotations

import pytest
import torch

import ansor
from ansor.commands.common import compare
from ansor.errors import ModelError

pytestmark = [pytest.mark.torch, pytest.mark.compiler]


def test_exported_programs_are_compared_and_inputs_that_a_model_refuses_are_told() -> None:
    given = (torch.randn(2, 8),)
    program = torch.export.export(torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()), given)
    network = ansor.compile(program, given, "cpu -threads=1", trials=0, library=False)
    assert compare(network, program, given, 1).error < 1e-5
    with pytest.raises(ModelError, match="the model itself fails on its example inputs with RuntimeError: .*; give inputs that the model takes"):
        compare(network, torch.nn.Linear(7, 4), given, 1)
