"""Training examples from the records of a data set: for each task the feature rows of its programs, and their times.

Records hold sketches and rows; this module computes features from them, so that a change to the features needs no new measurements. For hundreds of tasks
that takes a while, so results are cached next to the records, and used only with the same sources and on the same kind of machine.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.dataset.collect import records_of, search_task
from ansor.dataset.operators import DatasetTask
from ansor.ir.feature_rows import FeatureRows, join
from ansor.measure.record_target import record_target
from ansor.support.safe_files import write_whole
from ansor.targets.base import Target
from ansor.tasks.recorded import recorded_outcomes
from ansor.tasks.task import SearchTask


@dataclass(frozen=True, eq=False)
class Examples:
    """The measured programs of a task. seconds: `[n]`, infinite for a failure."""

    task: DatasetTask
    features: FeatureRows
    seconds: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.seconds)


def load_examples(tasks: Sequence[DatasetTask], target: Target, folder: Path, left_out: Counter[str] | None = None) -> Iterator[Examples]:
    """The examples of every task whose record file has a valid program, one after another. `left_out` counts records that do not apply, by reason."""
    for task in tasks:
        found = _kept(task, target, folder, Counter() if left_out is None else left_out) if records_of(folder, task).exists() else None
        if found is not None and np.isfinite(found.seconds).any():
            yield found


def _kept(task: DatasetTask, target: Target, folder: Path, left_out: Counter[str]) -> Examples:
    records = records_of(folder, task)
    place = folder / "features" / hashlib.sha256(record_target(target).encode()).hexdigest()[:8] / f"{task.name}.npz"
    state = records.stat()
    key = f"{record_target(target)} {_sources()} {state.st_size} {state.st_mtime_ns}"
    found = _read(place, key)
    if found is None:
        found = examples_of(search_task(task, target), records, left_out)
        _write(place, key, *found)
    return Examples(task, *found)


def _read(place: Path, key: str) -> tuple[FeatureRows, NDArray[np.float64]] | None:
    """The cached examples under this key; None if there is nothing, something else, or half a file."""
    try:
        with place.open("rb") as file, np.load(file, allow_pickle=False) as kept:
            if str(kept["key"]) != key:
                return None
            return FeatureRows(kept["rows"], kept["segment"], len(kept["seconds"]), kept["prior"]), kept["seconds"]
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
        return None


def _write(place: Path, key: str, features: FeatureRows, seconds: NDArray[np.float64]) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    held = io.BytesIO()
    np.savez_compressed(held, key=key, rows=features.rows, segment=features.segment, prior=features.prior_logs(), seconds=seconds)
    write_whole(place, held.getvalue())  # several runs may read one folder


DESCRIBES = ("ansor.te", "ansor.ir", "ansor.schedule", "ansor.algorithms", "ansor.targets", "ansor.rules", "ansor.cost_model")
"""Packages that features depend on: they define the programs and their descriptions."""


@lru_cache(maxsize=1)
def _sources() -> str:
    """A digest of those packages and of this file: stale features would go unnoticed."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for package in DESCRIBES:
        for folder in importlib.import_module(package).__path__:
            for path in sorted(Path(folder).rglob("*.py")):
                digest.update(path.read_bytes())
    return digest.hexdigest()


REPEATS = 5
"""Use this many measured times of each program: the minimum of more would be lower."""


def examples_of(task: SearchTask, records: Path, left_out: Counter[str]) -> tuple[FeatureRows, NDArray[np.float64]]:
    """Feature rows and seconds of a task's recorded programs, sketch by sketch."""
    recorded = recorded_outcomes(task, records)
    left_out.update(recorded.left_out)
    by_space: dict[int, list[tuple[tuple[int, ...], float]]] = {}
    for outcome, record in recorded.known:
        seconds = min(record.costs[:REPEATS]) if outcome.valid else np.inf  # the minimum, not the median: other load only adds time
        by_space.setdefault(outcome.pick.space, []).append((outcome.pick.row, seconds))
    parts: list[FeatureRows] = []
    times: list[float] = []
    for space, programs in sorted(by_space.items()):
        rows = np.array([row for row, _ in programs], np.int64).reshape(len(programs), -1)
        parts.append(task.spaces[space].features(rows))
        times += [seconds for _, seconds in programs]
    return (join(parts) if parts else FeatureRows(np.zeros((0, 0), np.float32), np.zeros(0, np.int64), 0)), np.array(times)
