"""The example files define the same networks as the zoo, the same ones in each process."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch

from ansor.zoo.catalogue import NETWORKS

pytestmark = pytest.mark.torch
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_examples_are_the_zoo(name: str) -> None:
    example = runpy.run_path(str(EXAMPLES / f"{name}.py"))
    ours, theirs = NETWORKS[name].model().state_dict(), example["model"]().state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(one, theirs[key]) for key, one in ours.items())
    assert all(torch.equal(one, other) for one, other in zip(NETWORKS[name].example_inputs(), example["example_inputs"](), strict=True))


def test_making_a_model_leaves_the_callers_random_state() -> None:
    before = torch.random.get_rng_state()
    NETWORKS["mobilenet_v2"].model()
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(("name", "parameters"), [("resnet18", 11_689_512), ("resnet34", 21_797_672), ("resnet50", 25_557_032), ("mobilenet_v2", 3_504_872)])
def test_sizes_equal_torchvisions(name: str, parameters: int) -> None:
    assert sum(parameter.numel() for parameter in NETWORKS[name].model().parameters()) == parameters
