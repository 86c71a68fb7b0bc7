"""The keywords of `auto_schedule`, `compile` and `tune_tasks`, and the value that they are combined into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, TypedDict

from ansor.cost_model.base import CostModel
from ansor.measure.device_kinds import check_devices
from ansor.measure.record import check_file
from ansor.measure.record_place import make_place
from ansor.measure.timing import TimingOptions
from ansor.run.budget import Budget
from ansor.run.options import SearchOptions
from ansor.run.reporter import OnProgress, Report, Reporter, View, quiet
from ansor.run.several_targets import Devices, DevicesByTarget, devices_by_target, name_of
from ansor.run.views import view_of
from ansor.run.zero_tuning import pick
from ansor.support.notices import warn
from ansor.targets.base import Target
from ansor.tasks.arguments import check_arguments


class TuningKeywords(TypedDict, total=False):
    """How long to tune, with which records, and where to report: see `ansor.auto_schedule`."""

    trials: int | None
    minutes: float | None
    min_gain: float | None
    records: str | Path | None
    devices: Devices | DevicesByTarget | None
    seed: int
    timing: TimingOptions | None
    early_stop: int | None
    progress: bool | View | None
    report: Report
    on_progress: OnProgress


class ModelKeywords(TuningKeywords, total=False):
    """The same, and the model that scores programs."""

    model: CostModel | Literal["package"] | None


class NetworkKeywords(TuningKeywords, total=False):
    """The same where `model` is the network."""

    cost_model: CostModel | Literal["package"] | None


class ChoosingKeywords(TypedDict, total=False):
    """What chooses programs where nothing is measured, and where to report."""

    records: str | Path | None
    cost_model: CostModel | Literal["package"] | None
    seed: int
    progress: bool | View | None
    report: Report


@dataclass(frozen=True)
class Audience:
    """Where to report. progress: True shows a view, False none, None one on terminals and in notebooks; or a view itself. report: receives lines; on_progress:
    called after every trial."""

    progress: bool | View | None = None
    report: Report = quiet
    on_progress: OnProgress = quiet

    @contextmanager
    def reporter(self, target: Target) -> Iterator[Reporter]:
        """A reporter to report with, while the view is shown."""
        with view_of(self.progress, target) as view:
            yield Reporter(view, self.report, self.on_progress)


@dataclass(frozen=True)
class RunOptions:
    """The checked options of a run. `given`: whether the caller gave a budget, even an empty one."""

    budget: Budget
    search: SearchOptions = field(default_factory=SearchOptions)
    records: Path | None = None
    timing: TimingOptions | None = None
    devices: Devices | DevicesByTarget | None = None
    audience: Audience = field(default_factory=Audience)
    given: bool = True

    @staticmethod
    def of(asked: TuningKeywords, model: CostModel | str | None = None, *, needs_budget: bool = False) -> RunOptions:
        """Options from user arguments. Without a budget nothing is measured, unless one is needed. Raises BudgetError and ArgumentError."""
        trials, minutes = asked.get("trials"), asked.get("minutes")
        given = trials is not None or minutes is not None
        budget = Budget.of(trials if given or needs_budget else 0, minutes, asked.get("min_gain"))
        name_of_model = "cost_model" if "cost_model" in asked else "model"
        check_arguments(**{name_of_model: model}, **{name: value for name, value in asked.items() if name in CHECKED})
        seed, records = asked.get("seed", 0), asked.get("records")
        return RunOptions(
            budget,
            SearchOptions(seed, model, asked.get("early_stop"), partial(pick, seed=seed)),
            None if records is None else Path(records),
            asked.get("timing"),
            asked.get("devices"),
            Audience(asked.get("progress"), asked.get("report", quiet), asked.get("on_progress", quiet)),
            given,
        )

    @property
    def measures(self) -> bool:
        """Whether programs are measured."""
        return self.budget.trials != 0

    @property
    def kept(self) -> str:
        """Where the trials of a run that was ended early are, and how to continue it; '' without a file."""
        return "" if self.records is None else f"the trials so far are in {self.records}: run this again to continue"

    @contextmanager
    def reporter(self, target: Target) -> Iterator[Reporter]:
        """The reporter of a run, while the view is shown. If Ctrl-C ends something other than the measurements, the exception says what is kept."""
        before = self._kept_bytes
        try:
            with self.audience.reporter(target) as reporter:
                yield reporter
        except KeyboardInterrupt as stopped:
            if not stopped.args and self.measures and self._kept_bytes:
                when = "before measuring began; earlier" if self._kept_bytes == before else "after measuring ended; its"
                stopped.args = (f"{when} trials are in {self.records}: run this again to continue",)
            raise

    @property
    def _kept_bytes(self) -> int:
        """The size of the record file, 0 without one."""
        return self.records.stat().st_size if self.records is not None and self.records.exists() else 0

    def check_devices(self, targets: Sequence[Target]) -> None:
        """Raise DeviceError and ArgumentError for given devices that cannot measure for the targets, as far as is known before they are opened."""
        if self.measures and self.devices is not None:
            for target, devices in zip(targets, devices_by_target([name_of(target) for target in targets], self.devices), strict=True):
                check_devices(devices, target)

    def check_place(self, written: bool) -> None:
        """Raise RecordError for records that cannot be read or written to, before any work is done."""
        if self.records is not None:
            check_records(self.records, written)


CHECKED = ("records", "seed", "timing", "early_stop", "progress", "report", "on_progress")
"""Keywords of `TuningKeywords` that are checked here; `Budget` checks the others."""


def check_records(records: Path, written: bool) -> None:
    """Raise RecordError for a file that cannot be read or written to, or that holds something else. Warn if a file that is only read does not exist."""
    check_file(records)
    if written:
        make_place(records)
    if not records.exists():
        warn(f"there is no record file {records}, so the model picks the programs; check the path, or give trials= or minutes= to tune")
