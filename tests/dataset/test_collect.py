from pathlib import Path

import numpy as np
import pytest

from ansor.dataset.collect import collect, records_of
from ansor.dataset.examples import load_examples
from ansor.dataset.operators import DatasetTask
from ansor.measure.record import load
from ansor.targets.base import parse_target
from ansor.tuning import TaskState

pytestmark = pytest.mark.compiler
TARGET = parse_target("cpu -threads=1")
TASKS = [DatasetTask("softmax", "tiny", (("rows", 4), ("columns", 8)), ""), DatasetTask("matmul", "tiny", (("rows", 8), ("columns", 8), ("inputs", 8)), "")]


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    told: list[tuple[str, int]] = []

    def done(task: DatasetTask, state: TaskState) -> None:
        told.append((task.kind, state.trials))

    collect(TASKS[:1], TARGET, tmp_path, trials=3, done=done)
    collect(TASKS, TARGET, tmp_path, trials=5, done=done)
    assert told == [("softmax", 3), ("softmax", 5), ("matmul", 5)]
    assert [len(load(records_of(tmp_path, task)).records) for task in TASKS] == [5, 5]
    examples = list(load_examples(TASKS, TARGET, tmp_path))
    assert [one.task for one in examples] == TASKS and [len(one) for one in examples] == [5, 5]
    for one in examples:
        assert one.features.count == 5 and np.isfinite(one.seconds).any() and one.features.prior is not None
    again = list(load_examples(TASKS, TARGET, tmp_path))  # from what was kept
    for one, kept in zip(examples, again, strict=True):
        np.testing.assert_array_equal(one.features.rows, kept.features.rows)
        np.testing.assert_array_equal(one.features.prior_logs(), kept.features.prior_logs())
        np.testing.assert_array_equal(one.seconds, kept.seconds)


def test_tasks_without_records_are_left_out(tmp_path: Path) -> None:
    assert not list(load_examples(TASKS, TARGET, tmp_path))
