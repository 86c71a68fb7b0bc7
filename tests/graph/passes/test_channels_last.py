from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from ansor.graph.passes.channels_last import to_first, to_last
from ansor.graph.tasks import ExtractedGraph

pytestmark = pytest.mark.torch
Agrees = Callable[..., ExtractedGraph]


def operators(extracted: ExtractedGraph) -> list[str]:
    return [node.op for node in extracted.graph]


def test_orders_are_inverse() -> None:
    assert to_last(4) == (0, 2, 3, 1) and to_first(4) == (0, 3, 1, 2)


def test_one_transposition_at_the_input_and_none_after_a_global_pool(agrees: Agrees) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
    extracted = agrees(model, torch.randn(1, 3, 12, 12))
    assert operators(extracted) == ["transpose", "conv2d", "relu", "pool2d", "conv2d", "mean", "reshape", "dense"]
    assert all(node.text("layout") == "NHWC" for node in extracted.graph if "layout" in node.attributes)


def test_images_of_one_channel_need_no_transposition(agrees: Agrees) -> None:
    assert operators(agrees(nn.Conv2d(1, 4, 3), torch.randn(1, 1, 6, 6))) == ["reshape", "conv2d", "transpose"]


def test_flattening_real_images_transposes_back(agrees: Agrees) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(64, 2))
    assert operators(agrees(model, torch.randn(2, 3, 6, 6))) == ["transpose", "conv2d", "transpose", "reshape", "dense"]


class Everything(nn.Module):
    """Each kind of node that has a channels-last form, between two convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(8, 4, 1)
        self.scale = nn.Parameter(torch.randn(4, 1, 1))
        self.row = nn.Parameter(torch.randn(6))

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.first(x)
        y = y * self.scale + self.row + gate[:, None, None] + x.mean()
        y = torch.where(y > 0, y, x[:, :1])
        y = torch.cat([y, torch.softmax(y, 1)], 1)
        y = nn.functional.pad(y, (1, 0, 0, 2))[:, :, ::2, 1:]
        y = self.second(y)
        squeezed = y.mean((2, 3), keepdim=True)
        return y * squeezed.sigmoid(), y.sum(1), y.amax(2), y.mean((0, 2)), y.flatten(2).transpose(1, 2), y.permute(0, 2, 3, 1), squeezed[:, :, 0, 0]


def test_all_kinds_of_nodes(agrees: Agrees) -> None:
    extracted = agrees(Everything(), torch.randn(2, 3, 6, 6), torch.randn(4))
    assert not extracted.torch_calls


def test_sequences_and_volumes(agrees: Agrees) -> None:
    agrees(nn.Sequential(nn.Conv1d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool1d(1)), torch.randn(2, 3, 8))
    agrees(nn.Sequential(nn.Conv3d(3, 4, 3), nn.BatchNorm3d(4), nn.MaxPool3d(2)), torch.randn(2, 3, 6, 6, 6))


def test_channels_last_by_permutation_is_left_free(agrees: Agrees) -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm, self.line = nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.LayerNorm(4), nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.line(self.norm(self.conv(x).permute(0, 2, 3, 1)))
            result: torch.Tensor = x + y.permute(0, 3, 1, 2)
            return result

    assert operators(agrees(nn.Sequential(Block(), Block()), torch.randn(1, 4, 5, 5))).count("transpose") == 2


@pytest.mark.parametrize(("mode", "steps"), [("nearest", ["index"]), ("bilinear", ["index"] * 4 + ["sub", "mul", "add"] * 3)])
def test_resizing_between_convolutions_keeps_channels_last(agrees: Agrees, mode: str, steps: list[str]) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2, mode=mode), nn.Conv2d(4, 8, 3))
    assert operators(agrees(model, torch.randn(2, 3, 8, 9))) == ["transpose", "conv2d", *steps, "conv2d", "transpose"]


PLACES = torch.tensor([3, 0, 2])


@pytest.mark.parametrize("look_up", [
    lambda x: x[:, :, PLACES], lambda x: x[:, :, :, PLACES], lambda x: x[:, :, PLACES[:, None], PLACES], lambda x: x[:, :, PLACES, PLACES],
    lambda x: x[:, :, :, torch.stack([PLACES, PLACES])], lambda x: torch.roll(x, (2, -1), (2, 3)),
])  # fmt: skip
def test_places_of_images_are_looked_up_with_channels_last(agrees: Agrees, look_up: Callable[[torch.Tensor], torch.Tensor]) -> None:
    convolution = nn.Conv2d(3, 4, 3, padding=1)
    found = operators(agrees(lambda x: look_up(convolution(x)), torch.randn(2, 3, 5, 6)))
    assert found[:3] == ["transpose", "conv2d", "index"] and found[-1] == "transpose"


def test_places_that_are_apart_read_the_array_itself(agrees: Agrees) -> None:
    convolution = nn.Conv3d(3, 4, 3, padding=1)
    found = operators(agrees(lambda x: convolution(x)[:, :, PLACES, :, PLACES], torch.randn(2, 3, 5, 6, 4)))
    assert found[:4] == ["transpose", "conv3d", "transpose", "index"]


def test_places_may_be_computed_from_images(agrees: Agrees) -> None:
    convolution = nn.Conv2d(3, 4, 3, padding=1)

    def look_up(x: torch.Tensor) -> torch.Tensor:
        image: torch.Tensor = convolution(x)
        return image[:, :, (image[:, :1] > 0).long()[0]]

    assert operators(agrees(look_up, torch.randn(1, 3, 5, 6)))[:2] == ["transpose", "conv2d"]


def test_an_array_without_channels_last_is_looked_up_as_it_is(agrees: Agrees) -> None:
    convolution = nn.Conv2d(3, 4, 3, padding=1)
    table = torch.randn(2, 3, 7)
    found = operators(agrees(lambda x: table[:, :, (convolution(x) > 0).long()], torch.randn(1, 3, 5, 6)))
    assert "transpose" not in found[found.index("index") :]


@pytest.mark.parametrize("look_up", [lambda x: x[:, PLACES], lambda x: x[PLACES % 2], lambda x: x[:, PLACES, PLACES]])
def test_other_look_ups_read_the_array_itself(agrees: Agrees, look_up: Callable[[torch.Tensor], torch.Tensor]) -> None:
    convolution = nn.Conv2d(3, 4, 3, padding=1)
    assert operators(agrees(lambda x: look_up(convolution(x)), torch.randn(2, 3, 5, 6)))[:4] == ["transpose", "conv2d", "transpose", "index"]
