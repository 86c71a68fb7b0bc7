"""What the records of a data set teach: per task the feature rows of its programs and their times.

Records hold sketches and rows; features are computed from them here, so that a change of the features needs no new measurements. That takes a while for
some hundred tasks and is kept beside the records, for the version of the features it was made with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.feature_table import FEATURES_VERSION
from ansor.dataset.collect import records_of, search_task
from ansor.dataset.operators import DatasetTask
from ansor.ir.feature_rows import FeatureRows, join
from ansor.targets.base import Target
from ansor.task import SearchTask
from ansor.tuning import recorded_outcomes


@dataclass(frozen=True, eq=False)
class Examples:
    """The measured programs of a task. seconds: `[n]`, infinite for one that failed."""

    task: DatasetTask
    features: FeatureRows
    seconds: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.seconds)


def load_examples(tasks: Sequence[DatasetTask], target: Target, folder: Path) -> Iterator[Examples]:
    """The examples of every task that has a record file with a valid program, one after the other."""
    for task in tasks:
        found = _kept(task, target, folder) if records_of(folder, task).exists() else None
        if found is not None and np.isfinite(found.seconds).any():
            yield found


def _kept(task: DatasetTask, target: Target, folder: Path) -> Examples:
    records = records_of(folder, task)
    place = folder / "features" / f"{task.name}.npz"
    state = records.stat()
    key = f"{FEATURES_VERSION} {target} {state.st_size} {state.st_mtime_ns}"
    if place.exists():
        with np.load(place) as kept:
            if str(kept["key"]) == key:
                features = FeatureRows(kept["rows"], kept["segment"], len(kept["seconds"]), kept["prior"])
                return Examples(task, features, kept["seconds"])
    features, seconds = examples_of(search_task(task, target), records)
    place.parent.mkdir(exist_ok=True)
    np.savez_compressed(place, key=key, rows=features.rows, segment=features.segment, prior=features.prior_logs(), seconds=seconds)
    return Examples(task, features, seconds)


def examples_of(task: SearchTask, records: Path) -> tuple[FeatureRows, NDArray[np.float64]]:
    """Feature rows and seconds of a task's recorded programs, sketch by sketch."""
    by_space: dict[int, list[tuple[tuple[int, ...], float]]] = {}
    for outcome, record in recorded_outcomes(task, records).known:
        seconds = min(record.seconds) if outcome.valid else np.inf  # the least, not the median: whatever else ran only ever adds
        by_space.setdefault(outcome.pick.space, []).append((outcome.pick.row, seconds))
    parts: list[FeatureRows] = []
    times: list[float] = []
    for space, programs in sorted(by_space.items()):
        rows = np.array([row for row, _ in programs], np.int64).reshape(len(programs), -1)
        parts.append(task.spaces[space].features(rows))
        times += [seconds for _, seconds in programs]
    return (join(parts) if parts else FeatureRows(np.zeros((0, 0), np.float32), np.zeros(0, np.int64), 0)), np.array(times)
