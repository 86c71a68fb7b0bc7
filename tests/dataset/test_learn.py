"""Fitting the built-in model to this machine: what is measured, in which order, what is learned, and when it counts as better."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pytest

from ansor.cost_model.fit_network import NetworkOptions
from ansor.cost_model.pretrained import learned_targets, pretrained
from ansor.dataset import collect as collecting
from ansor.dataset import learn
from ansor.dataset.evaluate import Quality
from ansor.dataset.examples import Examples
from ansor.dataset.learn import Tried, is_better, measure, recorded, spread
from ansor.dataset.operators import KINDS, DatasetTask, dataset_tasks
from ansor.dataset.split import FOLDS, HELD_OUT, fold_of
from ansor.run.states import TaskState
from ansor.targets.base import parse_target
from tests.run.test_tuning import FakeMeasurer

pytestmark = pytest.mark.compiler
TARGET = parse_target("cpu -threads=1")


def tiny(kind: str, **sizes: int) -> DatasetTask:
    named = DatasetTask(kind, "tiny", tuple(sizes.items()), "")
    return replace(named, base=named.name)


TASKS = [tiny("softmax", rows=rows, columns=16) for rows in (4, 5, 10)] + [tiny("matmul", rows=8, columns=8, inputs=k) for k in (3, 4, 6)]


class Measured(FakeMeasurer):
    """Replaces a machine's measurer."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Measured:
    measurer = Measured()
    monkeypatch.setattr(collecting, "Measurer", lambda target, timing: measurer)
    monkeypatch.setattr(learn, "PASSES", (4, 6))
    return measurer


@pytest.mark.parametrize("seed", [0, 1])
def test_kinds_alternate_and_a_fifth_is_held_out(seed: int) -> None:
    tasks = dataset_tasks()
    order = spread(tasks, seed)
    assert Counter(order) == Counter(tasks) and order == spread(tasks, seed) != spread(tasks, seed + 1)
    first = order[: len(KINDS) * FOLDS // (FOLDS - 1) + 1]
    held_out = [task for task in first if fold_of(task) == HELD_OUT]
    learned = [task for task in first if fold_of(task) != HELD_OUT]
    assert len(held_out) == round(len(first) / FOLDS) and {task.kind for task in learned} == set(KINDS), "five minutes include some of each kind"
    assert len({task.kind for task in held_out}) == len(held_out)
    assert all(task.base == task.name for task in first), "network sizes come first"


def test_a_few_tasks_can_be_ordered() -> None:
    assert Counter(spread(TASKS)) == Counter(TASKS) and not spread([])


def test_passes_cover_all_tasks_and_resume(fake: Measured, tmp_path: Path) -> None:
    told: list[tuple[str, int]] = []

    def done(task: DatasetTask, states: Sequence[TaskState]) -> None:
        told.append((task.name, states[0].trials))

    fake.interrupt_at = 7
    with pytest.raises(KeyboardInterrupt):
        measure(TASKS, TARGET, tmp_path, 1e6, done=done)
    assert told == [(TASKS[0].name, 4)] and [recorded(task, TARGET, tmp_path) for task in TASKS] == [4, 2, 0, 0, 0, 0]
    fake.interrupt_at = 0
    measure(TASKS, TARGET, tmp_path, 1e6, done=done)
    assert told[1:6] == [(task.name, 4) for task in TASKS[1:]] and told[6:] == [(task.name, 6) for task in TASKS]
    assert len(fake.jobs) == 6 * len(TASKS) + 1, "only the interrupted task is measured twice"
    measure(TASKS, TARGET, tmp_path, 1e6, done=done)
    assert len(told) == 12, "nothing is left"
    header = json.loads((tmp_path / f"{TASKS[0].name}.jsonl").read_text().splitlines()[0])["header"]
    assert header["machine"]["cost_model"].startswith("package "), "regardless of earlier fits"


def test_no_time_measures_nothing(fake: Measured, tmp_path: Path) -> None:
    measure(TASKS, TARGET, tmp_path, 0.0)
    assert not fake.jobs


@pytest.mark.torch
def test_the_built_in_networks_are_trained_further(fake: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure(TASKS, TARGET, tmp_path, 1e6)
    learned, held_out = learn.examples(TASKS, TARGET, tmp_path)
    assert {one.task for one in learned + held_out} == set(TASKS) and all(fold_of(one.task) == HELD_OUT for one in held_out)
    real, known = learn._known, list[Examples]()

    def once(*given: Any) -> list[Examples]:
        """Those of the first training, which are the same for the second."""
        known.extend(() if known else real(*given))
        return known

    monkeypatch.setattr(learn, "_known", once)
    options = NetworkOptions(epochs=1, learning_rate=1e-6, decay=0.0, dropout=0.0)
    hardly = learn.fit(learned, options)
    package = pretrained().networks
    rows = learned[0].features.rows
    for one, other in zip(hardly, package, strict=True):
        np.testing.assert_allclose(one(rows), other(rows), atol=0.02)
    further = learn.fit(learned, replace(options, epochs=4, learning_rate=1e-3))  # of so few tasks an epoch is one step, and the last step's rate is almost 0
    assert all((one(rows) != other(rows)).any() for one, other in zip(further, package, strict=True))
    found = learn.tried(package, held_out, pretrained())
    assert found.package == found.fitted == found.before and not found.better and found.package.tasks == len(held_out) > 0


def test_training_includes_the_built_in_models_predictions() -> None:
    known = list(learn._known(TASKS[:4], pretrained()))
    assert [one.task for one in known] == TASKS[:4] and len(learned_targets()) == 4


def of(pairs: float, peak1: float, peak5: float, tasks: int = 5) -> Quality:
    return Quality(tasks, 0.1, pairs, peak1, peak5)


def test_comparison_of_models() -> None:
    package = of(0.8, 0.8, 0.9)
    assert is_better(of(0.81, 0.8, 0.9), package) and is_better(of(0.81, 0.79, 0.92), package)
    assert not is_better(package, package) and not is_better(of(0.81, 0.7, 0.95), package) and not is_better(of(0.79, 0.9, 0.95), package)
    assert not is_better(of(0.9, 0.9, 0.9, tasks=0), package)
    fitted = of(0.82, 0.8, 0.9)
    assert Tried(package, fitted, package).better and Tried(package, fitted, package, before=of(0.81, 0.8, 0.9)).better
    assert not Tried(package, fitted, package, before=of(0.83, 0.8, 0.9)).better
