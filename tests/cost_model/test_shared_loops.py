"""Networks that learned from programs of one thread are not shown what they cannot judge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.cost_model.feature_table import COLUMN, WIDTH
from ansor.cost_model.pretrained import pretrained
from ansor.cost_model.shared_loops import NOT_PARALLEL, PARALLEL, THREADS, without_shared_loops
from ansor.tasks.task import SearchTask

LEARNED = pretrained().networks[0].layers.inputs


def rows(threads: int, count: int = 3) -> NDArray[np.float32]:
    made = np.random.default_rng(0).uniform(0.5, 3.0, (count, WIDTH)).astype(np.float32)
    made[:, THREADS] = np.log2(1.0 + threads)
    return made


def test_rows_of_the_number_of_threads_that_was_learned_stay() -> None:
    found = rows(1)
    assert without_shared_loops(found, LEARNED) is found


@pytest.mark.parametrize("threads", [2, 3, 64])
def test_loops_of_other_numbers_of_threads_are_shown_as_not_parallel(threads: int) -> None:
    found = rows(threads)
    before, shown = found.copy(), without_shared_loops(found, LEARNED)
    others = [place for place in range(WIDTH) if place not in PARALLEL]
    assert np.array_equal(found, before) and np.array_equal(shown[:, others], before[:, others])
    assert (shown[:, PARALLEL] == NOT_PARALLEL).all()
    assert shown[0, COLUMN["parallel_type_none"]] == 1 and shown[0, COLUMN["parallel_prod"]] == 0


def test_each_row_is_told_by_itself() -> None:
    both = np.concatenate([rows(1), rows(2)])
    shown = without_shared_loops(both, LEARNED)
    assert np.array_equal(shown[:3], both[:3]) and np.array_equal(shown[3:], without_shared_loops(both[3:], LEARNED))


def test_networks_that_learned_from_several_numbers_of_threads_see_all() -> None:
    scale = LEARNED.scale.copy()
    scale[THREADS] = 1.0
    found = rows(2)
    assert without_shared_loops(found, replace(LEARNED, scale=scale)) is found


def test_the_model_of_the_package_does_not_care_which_loops_are_parallel_on_two_threads() -> None:
    space = SearchTask("matmul", (64, 64, 64), "cpu -threads=2").spaces[0]
    features = space.features(np.stack([np.zeros(len(space.sizes), np.int64), space.sizes - 1]))
    changed = features.rows.copy()
    changed[:, PARALLEL] = 0.5
    assert np.array_equal(pretrained().predict(features), pretrained().predict(replace(features, rows=changed)))
