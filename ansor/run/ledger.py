"""The records of a run: what is known before it, and all of its trials."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ansor.measure.failure import LINK
from ansor.measure.measurer import Measurement, Measurer
from ansor.measure.new_record import Trial, make_record
from ansor.measure.record import Record, RecordFile, make_header
from ansor.measure.record_target import record_target
from ansor.run.first_failures import FirstFailures
from ansor.run.options import Trials
from ansor.run.reporter import Callbacks
from ansor.run.states import TaskState
from ansor.search.tuner import Pick
from ansor.tasks.recorded import RecordedTrials, recorded_outcomes, say_left_out


class Ledger:
    """Reads the record file before a run, and appends to it in a `with` statement. Failures of the first trials are held back until their cause is clear.

    scorer: the name of the scoring model in records.
    """

    def __init__(self, trials: Trials, states: Sequence[TaskState], measurer: Measurer, seed: int, scorer: str = "") -> None:
        self._trials = trials
        self._states = states
        self._measurer = measurer
        self._seed = seed
        self._scorer = scorer
        self._first_failures = FirstFailures()
        self._file: RecordFile | None = None

    @property
    def _found(self) -> Path | None:
        """The file, if it exists."""
        file = self._trials.file
        return file if file is not None and file.exists() else None

    @property
    def of_several(self) -> bool:
        """Whether the run is one of several, each for its target."""
        return bool(self._trials.targets)

    def recorded(self, state: TaskState) -> RecordedTrials:
        """What the file knows about a task."""
        if self._found is None:
            return RecordedTrials([], {})
        found = recorded_outcomes(state.task, self._found, (self._measurer.model, self._measurer.unit))
        return found.without(self._trials.targets)

    def say_left_out(self, callbacks: Callbacks) -> None:
        """Report which records of the file do not count, if any."""
        if self._found is not None:
            say_left_out([state.left_out for state in self._states], self._found, callbacks.say, callbacks.warn)

    def __enter__(self) -> Self:
        if self._trials.file is not None:
            names = {state.task.workload_key: state.task.name for state in self._states}
            self._file = RecordFile(self._trials.file, make_header(self._measurer.toolchain, seed=self._seed, names=names, model=self._scorer))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._first_failures.settle()
        if self._file is not None:
            self._file.close()

    def keep(self, state: TaskState, pick: Pick, measurement: Measurement, round_: int) -> None:
        """Write a trial, unless its failure says nothing about the program. Raises MeasureError when the first programs all fail alike."""
        if measurement.failure is not None and measurement.failure.kind in LINK:
            return  # the next run may try the program again

        def write() -> None:
            if self._file is None and self._trials.log is None:
                return
            record = self._record(state, pick, measurement, round_)
            taken = self._trials.log is not None and self._trials.log(state.task, state.task.spaces[pick.space], record)
            if self._file is not None and not taken:
                self._file.append(record)

        self._first_failures.keep(measurement.failure, write)

    def _record(self, state: TaskState, pick: Pick, measurement: Measurement, round_: int) -> Record:
        space = state.task.spaces[pick.space]
        trial = Trial(state.task.workload_key, record_target(state.task.target), space.sketch.to_json(), pick.row, space.algorithm)
        return make_record(measurement, trial, device=self._measurer.model, seed=self._seed, round=round_)
