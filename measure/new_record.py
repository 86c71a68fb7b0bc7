"""Makes the record of a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from ansor.measure.measurer import Measurement
from ansor.measure.record import Json, Record, frozen, round_to
from ansor.targets.base import LOCAL


@dataclass(frozen=True)
class Trial:
    """The measured program: a row of a sketch, for a target. The sketch is of a workload or of an alternative algorithm. sketch: its steps as JSON."""

    workload: str
    target: str
    sketch: Sequence[object]
    row: Sequence[int]
    algorithm: str = ""


def make_record(measurement: Measurement, trial: Trial, *, device: str = LOCAL, seed: int = 0, round: int = 0) -> Record:
    """The record of a measurement, in a round of a search with that seed."""
    m = measurement
    return Record(
        trial.workload, trial.target, frozen(cast(Json, trial.sketch)), tuple(int(choice) for choice in trial.row), m.costs, m.failure, m.cut_short,
        round_to(m.elapsed), round_to(m.timestamp), seed, round, trial.algorithm, m.unit, device, m.counters, m.took.measured_by,
    )  # fmt: skip
