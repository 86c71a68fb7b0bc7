from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.dataset import examples as module
from ansor.dataset.collect import collect, records_of, search_task
from ansor.dataset.examples import examples_of, load_examples
from ansor.dataset.operators import DatasetTask
from ansor.ir.feature_rows import FeatureRows
from ansor.measure.record import load
from ansor.run.states import TaskState
from ansor.run.zero_tuning import pick
from ansor.targets.base import parse_target
from ansor.tasks.recorded import recorded_outcomes
from ansor.tasks.task import SearchTask

pytestmark = pytest.mark.compiler
TARGET = parse_target("cpu -threads=1")
TASKS = [DatasetTask("softmax", "tiny", (("rows", 4), ("columns", 8)), ""), DatasetTask("matmul", "tiny", (("rows", 8), ("columns", 8), ("inputs", 8)), "")]


def test_an_interrupted_run_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int]] = []

    def done(task: DatasetTask, states: Sequence[TaskState]) -> None:
        told.append((task.kind, states[0].trials))

    collect(TASKS[:1], TARGET, tmp_path, trials=3, done=done)
    collect(TASKS, TARGET, tmp_path, trials=5, done=done)
    assert told == [("softmax", 3), ("softmax", 5), ("matmul", 5)]
    assert [len(load(records_of(tmp_path, task)).records) for task in TASKS] == [5, 5]
    examples = list(load_examples(TASKS, TARGET, tmp_path))
    assert [one.task for one in examples] == TASKS and [len(one) for one in examples] == [5, 5]
    for one in examples:
        assert one.features.count == 5 and np.isfinite(one.seconds).any() and one.features.prior is not None
    with monkeypatch.context() as patch:
        patch.setattr(module, "examples_of", None)  # calling it would fail: the cache is used
        again = list(load_examples(TASKS, TARGET, tmp_path))
    for one, kept in zip(examples, again, strict=True):
        np.testing.assert_array_equal(one.features.rows, kept.features.rows)
        np.testing.assert_array_equal(one.features.prior_logs(), kept.features.prior_logs())
        np.testing.assert_array_equal(one.seconds, kept.seconds)


def test_cached_examples_are_used_only_while_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collect(TASKS[:1], TARGET, tmp_path, trials=3)
    made: list[str] = []

    def made_again(task: SearchTask, records: Path, left_out: Counter[str]) -> tuple[FeatureRows, NDArray[np.float64]]:
        made.append(task.name)
        return examples_of(task, records, left_out)

    monkeypatch.setattr(module, "examples_of", made_again)

    def times_made() -> int:
        made.clear()
        assert len(list(load_examples(TASKS[:1], TARGET, tmp_path))) == 1
        return len(made)

    assert [times_made(), times_made()] == [1, 0]
    collect(TASKS[:1], TARGET, tmp_path, trials=4)
    assert [times_made(), times_made()] == [1, 0], "more records exist"
    monkeypatch.setattr(module, "_sources", lambda: "another version")
    assert [times_made(), times_made()] == [1, 0], "the package has changed"
    monkeypatch.setattr(module, "record_target", lambda target: "another machine")
    assert [times_made(), times_made()] == [1, 0], "the machine has changed"
    kept = max((tmp_path / "features").glob("*/*.npz"), key=lambda path: path.stat().st_mtime_ns)
    kept.write_bytes(kept.read_bytes()[:100])
    assert [times_made(), times_made()] == [1, 0], "the cache file was truncated"


def test_records_that_do_not_apply_are_counted(tmp_path: Path) -> None:
    collect(TASKS[:1], TARGET, tmp_path, trials=3)
    left_out: Counter[str] = Counter()
    assert not list(load_examples(TASKS[:1], parse_target("cpu -threads=2"), tmp_path, left_out))
    assert list(left_out.values()) == [3] and "made for another target" in next(iter(left_out))


def test_tuning_mode_begins_with_the_untuned_choice(tmp_path: Path) -> None:
    collect(TASKS[1:], TARGET, tmp_path, trials=2, search="tuning")
    task = search_task(TASKS[1], TARGET)
    picked = pick(task).program
    outcome, _ = recorded_outcomes(task, records_of(tmp_path, TASKS[1])).known[0]
    assert task.spaces[outcome.pick.space].sketch is picked.sketch and outcome.pick.row == picked.row


def test_every_algorithm_gets_an_equal_part_of_the_programs(tmp_path: Path) -> None:
    task = DatasetTask("conv2d_nhwc", "tiny", (("batch", 1), ("channels", 16), ("image", 6), ("outputs", 16), ("kernel", 3), ("padding", 1)), "")
    told: list[int] = []
    for _ in range(2):  # again, and nothing is left to measure
        collect([task], TARGET, tmp_path, trials=7, search="algorithms", done=lambda task, states: told.append(sum(state.trials for state in states)))
    whole = search_task(task, TARGET)
    recorded = recorded_outcomes(whole, records_of(tmp_path, task))
    assert Counter(whole.spaces[outcome.pick.space].algorithm for outcome, _ in recorded.known) == {"": 2, "winograd_f4": 2, "winograd_f2": 3}
    assert told == [7, 7] and not recorded.left_out


def test_tasks_without_records_are_left_out(tmp_path: Path) -> None:
    assert not list(load_examples(TASKS, TARGET, tmp_path))
