"""A program for a task of which nothing was measured: sampled, legal, and the fastest by the analytic estimate."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ansor.schedule.choice import Choice
from ansor.schedule.sketch import Rows
from ansor.sketch_space import SketchSpace
from ansor.task import SearchTask
from ansor.tuning import Best

SAMPLES = 1024
"""Rows tried in each sketch of the declaration itself."""

ALTERNATIVE_SAMPLES = 256
"""Rows tried in each sketch of another algorithm: there are several of these, and each has more stages."""

ALTERNATIVE_MARGIN = 1.25
"""How many times as fast another algorithm has to be by the estimate, which knows nests better than what passes between them."""


def first_guess(task: SearchTask, seed: int = 0) -> Best:
    """The most promising of a few thousand programs, the same for a seed. Falls back to the declaration as it is when none is legal."""
    rng = np.random.default_rng(seed)
    found = [candidate for space in task.spaces if (candidate := _best_row(space, rng)) is not None]
    if not found:
        return Best(task.spaces[0].sketch, (0,) * len(task.spaces[0].sketch.choices), math.inf)
    _, sketch_space, row = min(found, key=lambda entry: entry[0])
    return Best(sketch_space.sketch, row, math.inf)


def _best_row(space: SketchSpace, rng: np.random.Generator) -> tuple[float, SketchSpace, tuple[int, ...]] | None:
    rows = _sampled(space, ALTERNATIVE_SAMPLES if space.algorithm else SAMPLES, rng)
    features = space.features(rows)
    cycles = np.where(space.legal(rows), features.sums(np.exp(features.prior_logs())), np.inf)
    best = int(np.argmin(cycles))
    margin = ALTERNATIVE_MARGIN if space.algorithm else 1.0
    return (float(cycles[best]) * margin, space, tuple(rows[best].tolist())) if np.isfinite(cycles[best]) else None


def _sampled(space: SketchSpace, count: int, rng: np.random.Generator) -> Rows:
    choices = space.sketch.choices
    if not choices:
        return np.zeros((1, 0), dtype=np.int64)
    return np.stack([_drawn(choice, count, rng) for choice in choices], axis=1)


def _drawn(choice: Choice, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    chances = None if choice.weights is None else choice.weights / choice.weights.sum()
    return rng.choice(choice.size, count, p=chances)
