from __future__ import annotations

import pytest
import torch
from torch import nn

from ansor.graph.tasks import extract

pytestmark = pytest.mark.torch


class Residual(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(channels, channels, 3, padding=1), nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(torch.relu(self.first(x))) + x)


def test_equal_groups_are_one_task() -> None:
    extracted = extract(nn.Sequential(Residual(4), Residual(4), Residual(4)), torch.zeros(1, 4, 8, 8))
    assert {task.name: task.weight for task in extracted.tasks} == {
        "transpose_1x4x8x8": 1, "conv2d_3x3_4_4_8x8_bias_relu": 3, "conv2d_3x3_4_4_8x8_bias_add_relu": 3, "transpose_1x8x8x4": 1,
    }
    assert extracted.weights == (1, 3, 3, 1)
    assert str(extracted).splitlines()[1] == "  3 x conv2d_3x3_4_4_8x8_bias_relu"


def test_a_task_declares_data_weights_and_result() -> None:
    task = extract(Residual(4), torch.zeros(1, 4, 8, 8)).tasks[2]
    assert [(tensor.name, tensor.shape, tensor.constant) for tensor in task.tensors] == [
        ("data", (1, 8, 8, 4), False), ("weight", (3, 3, 4, 4), True), ("bias", (4,), True), ("operand3", (1, 8, 8, 4), False), ("relu", (1, 8, 8, 4), False),
    ]


def test_different_groups_have_different_names_and_keys() -> None:
    extracted = extract(lambda x: (torch.clamp(x, 0, 1), torch.clamp(x.exp(), 0, 2), torch.clamp(x, 0, 3)), torch.zeros(2, 2))
    assert [task.name for task in extracted.tasks] == ["clip_2x2", "exp_2x2_clip", "clip_2x2_2"]
    assert len({task.key for task in extracted.tasks}) == 3


def test_keys_are_the_same_in_each_extraction() -> None:
    first, second = (extract(Residual(4), torch.zeros(1, 4, 8, 8)) for _ in range(2))
    assert [task.key for task in first.tasks] == [task.key for task in second.tasks]
    assert first.tasks[1].key == "7f987bc3e632180a"


class Exponential(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.exp()


NAMES = {
    "depthwise_conv2d_3x3_4_4x4_s2_bias": (nn.Conv2d(4, 4, 3, 2, 1, groups=4), (1, 4, 8, 8)),
    "conv2d_1x3_4_6_8x8_g2_bias": (nn.Conv2d(4, 6, (1, 3), padding=(0, 1), groups=2), (1, 4, 8, 8)),
    "conv2d_transpose_2x2_4_3_16x16_s2_bias": (nn.ConvTranspose2d(4, 3, 2, 2), (1, 4, 8, 8)),
    "max_pool2d_3x2_4_3x6_s3x1": (nn.MaxPool2d((3, 2), (3, 1)), (1, 4, 9, 7)),
    "dense_5x4x3": (nn.Linear(4, 3, bias=False), (5, 4)),
    "layer_norm_5x4": (nn.LayerNorm(4), (5, 4)),
    "relu_5x4_" + "exp_relu_" * 7 + "exp_and_3_more": (nn.Sequential(*(nn.Sequential(nn.ReLU(), Exponential()) for _ in range(9)), nn.ReLU()), (5, 4)),
}


@pytest.mark.parametrize("name", NAMES)
def test_names_say_what_a_task_is(name: str) -> None:
    model, shape = NAMES[name]
    assert name in [task.name for task in extract(model, torch.zeros(shape)).tasks]
