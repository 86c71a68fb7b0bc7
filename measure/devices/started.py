"""Common code of devices whose jobs start local programs that emulate other machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ansor.measure.device import Job, Observation
from ansor.measure.devices.one_job import JobLock
from ansor.measure.devices.program_runner import ProgramRunner
from ansor.measure.failure import Failure
from ansor.measure.trial.proof import HostProof
from ansor.measure.trial.runs import TrialRuns
from ansor.measure.work_directory import WorkDirectory
from ansor.targets.unit import Unit

Opened = Callable[[Path, ProgramRunner, HostProof], TrialRuns]


class StartedDevice:
    """One job at a time, in its own folder. `opened`: makes the TrialRuns, for a folder that exists while the device is open; called for the first job."""

    alone = False

    def __init__(self, name: str, model: str, unit: Unit, form: str, opened: Opened) -> None:
        self.name, self.model, self.unit, self.form = name, model, unit, form
        self._opened = opened
        self._work: WorkDirectory | None = None
        self._runs: TrialRuns | None = None
        self._one = JobLock()
        self._programs = ProgramRunner(self._one.closing)

    def run(self, job: Job) -> Observation | Failure:
        """See `Device`. Raises DeviceError if the emulator cannot be used."""
        with self._one.running():
            if self._runs is None:
                self._work = WorkDirectory()
                self._runs = self._opened(self._work.path, self._programs, HostProof(closing=self._one.closing))
            return self._runs.run(job)

    def close(self) -> None:
        """Stop the running job and remove its files."""
        with self._one.ended(self._programs.interrupt):
            if self._work is not None:
                self._work.close()
            self._work = self._runs = None
