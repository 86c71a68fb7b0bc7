"""Counts of a population are those of its programs; `test_kernels` has them beside what is built."""

from __future__ import annotations

import numpy as np

from ansor.vta.uop_counts import instructions_of, uops_of


def test_many_at_once() -> None:
    rng = np.random.default_rng(0)
    spatial, reduced = rng.integers(1, 30, (50, 3)), rng.integers(1, 6, (50, 2))
    results = spatial.prod(1)
    together = np.broadcast_to(np.asarray(uops_of(tuple(spatial.T), (*reduced.T, 3))), 50)
    parts = np.broadcast_to(np.asarray(instructions_of(results, results * reduced.prod(1))), 50)
    for place in range(50):
        assert together[place] == uops_of(spatial[place].tolist(), (*reduced[place].tolist(), 3))
        assert parts[place] == instructions_of(int(results[place]), int(results[place] * reduced[place].prod()))


def test_what_loops_leave() -> None:
    assert uops_of((4, 8, 56), (3, 3)) == 36 and uops_of((112,), (9,)) == 1 and uops_of((1, 8, 14), (9, 4)) == 32
    assert instructions_of(2, 18) == 9 and instructions_of(3, 27) == 1 and instructions_of(2, 2) == 1
