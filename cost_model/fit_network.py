"""Trains a network for the log time of statement rows on the programs of many tasks, with PyTorch.

A program's time is the sum of exp(prior + output) over its rows. Two losses within each task, whose level is free: the error of log times (Huber), and the
order of pairs (logistic, as in RankNet, Burges et al., ICML 2005). Pairs are weighted by how far apart they are and how fast the faster is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.network_library import Layers, Scaling
from ansor.cost_model.network import Network, rounded
from ansor.cost_model.torch_model import one_thread
from ansor.ir.feature_rows import FeatureRows

if TYPE_CHECKING:
    from torch import Tensor

LIMIT = 4.0  # standard deviations from the mean at which features are clipped
SLOWEST = 50.0  # times as long as the best: slower and failed programs count as this slow
SLOW_WEIGHT = 0.25  # of a very slow program, relative to the best
HUBER = 0.3  # in log time
SAME = 0.02  # log times closer than this have no order
FAR = 0.3  # difference of log times beyond which pairs weigh the same
SHARPNESS = 4.0  # of the logistic: it saturates for log times about 1 / SHARPNESS apart


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkOptions:
    """units: of each of `layers` + 1 layers; batch: tasks per step; dropout: between layers."""

    units: int = 128
    layers: int = 2
    epochs: int = 30
    batch: int = 8
    learning_rate: float = 2e-3
    decay: float = 0.02
    dropout: float = 0.1
    seed: int = 0


class _Task(NamedTuple):
    rows: Tensor
    prior: Tensor
    segment: Tensor
    slowness: Tensor


def fit_network(tasks: Sequence[tuple[FeatureRows, NDArray[np.float64]]], options: NetworkOptions, start: Network | None = None) -> Network:
    """tasks: features and seconds `[n]` of the programs of each, infinite for a failed one. Runs on one thread; deterministic for a seed on a machine.

    start: a network to train further, keeping its size; None: start from random weights. Raises ValueError without a task.
    """
    if not tasks:
        raise ValueError("a network needs a task to learn from")
    import torch

    begin = None if start is None else _continued(start.layers, [features for features, _ in tasks])
    mean, scale = _scaling([features for features, _ in tasks]) if begin is None else (begin.inputs.mean, begin.inputs.scale)
    rng = np.random.default_rng(options.seed)
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        known = [_as_tensors(features, seconds, mean, scale) for features, seconds in tasks]
        parameters = _initial(len(mean), options, rng) if begin is None else _parameters(begin)
        steps = options.epochs * -(-len(known) // options.batch)
        optimizer = torch.optim.AdamW(parameters, lr=options.learning_rate, weight_decay=options.decay)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.learning_rate, total_steps=steps, pct_start=0.1)
        for _ in range(options.epochs):
            order = rng.permutation(len(known))
            for first in range(0, len(order), options.batch):
                loss = _loss([known[k] for k in order[first : first + options.batch]], parameters, options.dropout)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]  # PyTorch's own omission
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
                optimizer.step()
                schedule.step()
    return Network(rounded(_layers(mean, scale, [one.detach().numpy() for one in parameters])))


def _scaling(features: Sequence[FeatureRows]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean of each column, and one over its deviation."""
    rows = np.concatenate([one.rows for one in features]).astype(np.float64)
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(deviation > 1e-6 * (1 + np.abs(mean)), 1 / np.maximum(deviation, 1e-30), 0.0)  # 0: a constant carries no information
    return mean.astype(np.float32), scale.astype(np.float32)


def _continued(layers: Layers, features: Sequence[FeatureRows]) -> Layers:
    """The layers to start from: a column that was constant where they learned, and varies here, is seen, and means nothing yet."""
    mean, scale = _scaling(features)
    seen = (layers.inputs.scale == 0) & (scale != 0)
    inputs = Scaling(np.where(seen, mean, layers.inputs.mean), np.where(seen, scale, layers.inputs.scale))
    return replace(layers, inputs=inputs, first=np.where(seen[:, None], 0, layers.first).astype(np.float32))


def _as_tensors(features: FeatureRows, seconds: NDArray[np.float64], mean: NDArray[np.float32], scale: NDArray[np.float32]) -> _Task:
    import torch

    held = np.clip((features.rows - mean) * scale, -LIMIT, LIMIT)
    slowness = np.log(np.minimum(seconds / seconds.min(), SLOWEST))
    return _Task(torch.from_numpy(held), torch.from_numpy(features.prior_logs().astype(np.float32)), torch.from_numpy(features.segment),
                 torch.from_numpy(slowness.astype(np.float32)))


def _initial(inputs: int, options: NetworkOptions, rng: np.random.Generator) -> list[Tensor]:
    """first, its bias, then weights and bias of each further layer, last, its bias; all scores start equal."""
    import torch

    units = options.units
    found: list[NDArray[np.float64]] = []
    for size in (inputs, *[units] * options.layers):
        found += [rng.uniform(-1, 1, (size, units)) / np.sqrt(size), np.zeros(units)]
    found += [np.zeros(units), np.zeros(1)]
    return [torch.from_numpy(one.astype(np.float32)).requires_grad_() for one in found]


def _parameters(layers: Layers) -> list[Tensor]:
    """The parameters of a network, in the order of `_initial`."""
    import torch

    further = [one for pair in zip(layers.weights, layers.bias, strict=True) for one in pair]
    found = [layers.first, layers.first_bias, *further, layers.last, np.array([layers.last_bias])]
    return [torch.from_numpy(np.array(one, np.float32)).requires_grad_() for one in found]


def _outputs(rows: Tensor, parameters: list[Tensor], dropout: float) -> Tensor:
    import torch

    relu, drop = torch.relu, torch.nn.functional.dropout
    first, first_bias, *further, last, last_bias = parameters
    hidden = relu(torch.addmm(first_bias, rows, first))
    for weights, bias in zip(further[::2], further[1::2], strict=True):
        hidden = hidden + relu(torch.addmm(bias, drop(hidden, dropout), weights))
    return hidden @ last + last_bias


def _loss(tasks: Sequence[_Task], parameters: list[Tensor], dropout: float) -> Tensor:
    import torch

    logs = _outputs(torch.cat([one.rows for one in tasks]), parameters, dropout) + torch.cat([one.prior for one in tasks])
    parts = torch.split(logs, [len(one.rows) for one in tasks])
    losses = [_loss_of(_totals(part, one.segment, len(one.slowness)), one.slowness) for part, one in zip(parts, tasks, strict=True)]
    return torch.stack(losses).mean()


def _totals(logs: Tensor, segment: Tensor, count: int) -> Tensor:
    """Log of the sum of exp(logs) of each program."""
    import torch

    most = torch.full((count,), -torch.inf).scatter_reduce(0, segment, logs.detach(), "amax")
    return torch.log(torch.zeros(count).index_add(0, segment, torch.exp(logs - most[segment]))) + most


def _loss_of(logs: Tensor, slowness: Tensor) -> Tensor:
    import torch

    weights = SLOW_WEIGHT + (1 - SLOW_WEIGHT) * torch.exp(-slowness)
    error = logs - slowness
    error = error - (weights * error).sum() / weights.sum()
    off = torch.nn.functional.huber_loss(error, torch.zeros_like(error), delta=HUBER, reduction="none")
    apart = slowness[:, None] - slowness[None, :]
    counts = torch.where(apart > SAME, torch.maximum(weights[:, None], weights[None, :]) * apart.clamp(max=FAR), 0.0)
    unsure = torch.nn.functional.softplus(-SHARPNESS * (logs[:, None] - logs[None, :])) / SHARPNESS
    return (weights * off).sum() / weights.sum() + (counts * unsure).sum() / (counts.sum() + 1e-9)


def _layers(mean: NDArray[np.float32], scale: NDArray[np.float32], parameters: Sequence[NDArray[np.float32]]) -> Layers:
    first, first_bias, *further, last, last_bias = parameters
    return Layers(Scaling(mean, scale), first, first_bias, np.array(further[::2]), np.array(further[1::2]), last, float(last_bias[0]), LIMIT)
