"""Small networks for sound, physics and ranking, built as users build them, against PyTorch: everything runs in kernels of our own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as f

import ansor
from ansor.graph.network import CompiledNetwork
from ansor.graph.tasks import extract
from tests.integer.pt2e_models import quantised

pytestmark = [pytest.mark.compiler, pytest.mark.torch]


class Sound(nn.Module):
    """Frames of a signal whose ends meet, their spectrum by a dense layer, normalised by the deviation of each band, and drawn out in time."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.bands = nn.Linear(8, 6, bias=False)

    def forward(self, signal: torch.Tensor) -> torch.Tensor:
        around = f.pad(signal[:, None], (2, 2), mode="circular")[:, 0]
        frames = around.roll(1, 1).unfold(1, 8, 4)
        bands = self.bands(frames)
        made = bands / (bands.std(1, keepdim=True) + 1e-3) + bands.flip(1)
        return f.pad(made, (1, 1), mode="reflect").repeat_interleave(2, 1)


class Physics(nn.Module):
    """A step of particles in a box, with what is not known left out."""

    def forward(self, place: torch.Tensor, speed: torch.Tensor, box: torch.Tensor) -> tuple[torch.Tensor, ...]:
        cell = torch.div(place, box, rounding_mode="floor")
        inside = place - cell * box
        moved = torch.addcmul(inside, speed, box, value=0.25)
        ratio = torch.addcdiv(inside, speed, box + 1)
        known = moved.isfinite()
        kept = moved.masked_fill(~known, torch.tensor(-1.0))
        whole = torch.div(kept, 0.5, rounding_mode="trunc")
        return cell, kept, ratio, whole, torch.fmax(place, speed), torch.fmin(place, speed), 2**speed, torch.copysign(box, speed), speed.signbit()


class Steps(nn.Module):
    """Numbers just above and below others."""

    def forward(self, x: torch.Tensor, to: torch.Tensor) -> torch.Tensor:
        return torch.nextafter(x, to)


def compiled(model: nn.Module, *inputs: torch.Tensor) -> CompiledNetwork:
    """Compiled with nothing left to PyTorch."""
    network = ansor.compile(model.eval(), inputs, "cpu -threads=1", library=False)
    assert not [name for name, _ in network.steps if name.startswith("torch ")]
    return network


def test_sound() -> None:
    signal, other = (torch.randn(2, 32, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    model = Sound()
    network = compiled(model, signal)
    with torch.no_grad():
        torch.testing.assert_close(network(other), model(other), rtol=1e-4, atol=1e-5)


def test_physics() -> None:
    place = torch.tensor([-7.5, -1.0, 0.0, 2.5, 1.0, 6.0, float("nan"), 3.0, float("inf")])
    speed = torch.tensor([2.0, -3.0, 1.0, -2.0, 0.1, 3.0, 1.0, float("nan"), -0.0])
    box = torch.tensor([2.0, 2.0, 1.0, 0.7, 0.1, 3.0, 1.0, 1.0, 1.0])
    found = compiled(Physics(), place, speed, box)(place, speed, box)
    assert isinstance(found, tuple)
    for one, wanted in zip(found, Physics()(place, speed, box), strict=True):
        torch.testing.assert_close(one, wanted, equal_nan=True)


def test_the_next_number_is_exact() -> None:
    x, to = torch.tensor([0.0, 1.0, -1.0, 3.0]), torch.tensor([1.0, 0.0, -2.0, 3.0])
    assert torch.equal(torch.as_tensor(compiled(Steps(), x, to)(x, to)), torch.nextafter(x, to))


@pytest.mark.filterwarnings("ignore:GraphModule of the model is in training mode:ansor.errors.AnsorWarning")  # as PyTorch exports it
def test_a_module_quantised_by_pt2e_multiplies_bytes() -> None:
    torch.manual_seed(0)
    samples = [torch.randn(4, 24, generator=torch.Generator().manual_seed(seed)) for seed in range(8)]
    module = quantised(nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 5)), samples)
    assert sum("integer_dense" in task.name for task in extract(module, (samples[0],)).tasks) == 2
    network = ansor.compile(module, (samples[0],), "cpu -threads=1", library=False)
    with torch.no_grad():
        for sample in samples[1:4]:
            found, wanted = torch.as_tensor(network(sample)), module(sample)
            step = float((wanted[wanted != 0].abs()).min())
            assert float((found - wanted).abs().max()) <= step + 1e-6 and np.corrcoef(found.ravel(), wanted.ravel())[0, 1] > 0.99
