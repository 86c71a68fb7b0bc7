"""Uniform crossover between rows of one space."""

import numpy as np

from ansor.search.space import Rows


def crossover(first: Rows, second: Rows, rng: np.random.Generator, share: float = 0.5) -> Rows:
    """Rows `[n, columns]` whose every choice comes from the same row of `second` with probability `share`, else of `first`."""
    return np.where(rng.random(first.shape) < share, second, first)
