"""Networks with groups: on the core, with the bytes of the reference, with scales that are powers of two and with zero points."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from ansor.integer.from_torch import from_torch
from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Convolution
from ansor.integer.reference import run
from ansor.offload.build import build
from ansor.offload.program import Running
from ansor.targets.base import parse_target
from ansor.targets.vta import configuration_of
from ansor.vta.runtime.operator_queue import Queue
from ansor.vta.runtime.simulators import FunctionalDriver
from tests.integer.networks import inputs_of

pytestmark = [pytest.mark.compiler, pytest.mark.torch]


def network(powers: bool) -> IntegerNetwork:
    """Groups of 3 channels, of 32, of one with two results each, and a channel each; padded, strided."""
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1), nn.Conv2d(24, 48, 3, padding=1, groups=8), nn.ReLU6(), nn.Conv2d(48, 64, 1), nn.Conv2d(64, 64, 3, 2, 1, groups=2),
        nn.Conv2d(64, 128, 3, padding=1, groups=64), nn.Conv2d(128, 128, 3, padding=1, groups=128), nn.Conv2d(128, 30, 3, padding=2, dilation=2, groups=2),
        nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(3, 1, 1), nn.Conv2d(30, 4, 1),
    ).eval()  # fmt: skip
    return from_torch(model, [torch.randn(1, 3, 9, 11) for _ in range(2)], "groups", powers_of_two=powers)


@pytest.mark.parametrize("core", ["default", "32"])
@pytest.mark.parametrize("powers", [True, False], ids=["powers of two", "zero points"])
def test_layers_in_groups_run_on_the_core(powers: bool, core: str) -> None:
    made = network(powers)
    placed = build(made, f"vta -core={core}")
    assert not placed.annotation.refused
    grouped = {one.output for one in made.operators if isinstance(one, Convolution) and (one.window.groups > 1 or one.depthwise)}
    assert len(grouped) == 5 and grouped <= placed.annotation.device
    running = Running(placed, Queue(FunctionalDriver(configuration_of(parse_target(f"vta -core={core}")), seed=4)))
    inputs = inputs_of(made, 1)
    right, found = run(made, inputs), running.run(inputs)
    for name in made.outputs:
        np.testing.assert_array_equal(found[name], right[name])
    running.close()
