"""Weights for untrained networks: random, the same in each process, and numerically well behaved."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def settled(make: Callable[[], nn.Module], image: tuple[int, ...] = (3, 64, 64)) -> nn.Module:
    """`make()` with seeded random weights, in evaluation mode.

    2-d batch norms get random scales and shifts, and the statistics of a batch of random inputs of shape `image`, as in training.
    Leaves the caller's random state unchanged.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = make()
        for norm in (part for part in network.modules() if isinstance(part, nn.BatchNorm2d)):
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.normal_(norm.bias, 0.0, 0.1)
            norm.momentum = 1.0
        with torch.no_grad():
            network.train()(torch.randn(4, *image))
    return network.eval()


def images(size: int = 224) -> tuple[torch.Tensor, ...]:
    """One random image [1, 3, size, size], the same in each process."""
    return (torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(1)),)
