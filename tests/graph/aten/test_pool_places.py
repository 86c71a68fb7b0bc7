"""Maximum pools with places, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as f

from ansor.graph.aten.pool_places import adaptive_windows, sliding_windows
from ansor.graph.tasks import ExtractedGraph

pytestmark = pytest.mark.torch

POOLS: dict[str, Callable[[torch.Tensor], object]] = {
    "plain": lambda x: f.max_pool2d(x, 2, return_indices=True), "padded": lambda x: f.max_pool2d(x, 3, 2, 1, return_indices=True),
    "dilated": lambda x: f.max_pool2d(x, 2, 1, 0, 2, return_indices=True), "over the end": lambda x: f.max_pool2d(x, 2, 2, ceil_mode=True, return_indices=True),
    "one dimension": lambda x: f.max_pool1d(x[0], 3, 2, 1, return_indices=True), "three": lambda x: f.max_pool3d(x[None], 2, return_indices=True),
    "adaptive": lambda x: f.adaptive_max_pool2d(x, (2, 3), return_indices=True), "own divisor": lambda x: f.avg_pool2d(x, 2, divisor_override=3),
    "one image": lambda x: (f.max_pool2d(x[0], 2), f.avg_pool2d(x[0], 2), f.adaptive_avg_pool2d(x[0], 2)),
}  # fmt: skip


def test_pools(agrees: Callable[..., ExtractedGraph]) -> None:
    assert not agrees(lambda x: {name: function(x) for name, function in POOLS.items()}, torch.randn(2, 3, 7, 8)).torch_calls


def test_equal_elements_give_the_first(agrees: Callable[..., ExtractedGraph]) -> None:
    assert not agrees(lambda x: f.max_pool2d(x, 3, 1, 1, return_indices=True), torch.ones(1, 1, 4, 4)).torch_calls


def test_windows() -> None:
    assert np.array_equal(sliding_windows((4,), (2,), (3,), (2,), (1,), (1,)), [[0, 1, 0], [1, 2, 3]])
    assert np.array_equal(adaptive_windows((5,), (2,)), [[0, 1, 2], [2, 3, 4]])
