"""What a run of several targets reports: lines name their target, and the progress of each comes with that of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ansor.errors import AnsorError
from ansor.measure.turns import Say
from ansor.run.budget import Budget
from ansor.run.reporter import Callbacks, Report, Reporter
from ansor.run.states import BudgetUse, Progress, WholeRun
from ansor.run.tuning import TuningRun


class TargetsReporter:
    """names: of the targets; budget: of all together. `runs` are set once they exist; they report to the callbacks of their numbers."""

    def __init__(self, names: Sequence[str], budget: Budget, reporter: Reporter) -> None:
        self.runs: Sequence[TuningRun] = ()
        self._names, self._budget, self._reporter = names, budget, reporter
        self._latest: dict[int, Progress] = {}

    def callbacks(self, number: int) -> Callbacks:
        """Where the run with that number reports. With a single one nothing is added."""
        if len(self._names) == 1:
            return self._reporter.callbacks
        say, now = self._named(number, self._reporter.say), self._named(number, self._reporter.now)
        return Callbacks(say, self.alarm(number), partial(self._update, number), now)

    def alarm(self, number: int) -> Say:
        """Where lines of the run go that must be seen."""
        return self._reporter.alarm if len(self._names) == 1 else self._named(number, self._reporter.alarm)

    def gave_up(self, number: int, error: AnsorError, left: int) -> None:
        """Report that a run has ended with an error, and how many go on."""
        self.alarm(number)(f"stopped{', the other targets go on' if left > 1 else ', the other target goes on' if left else ''}: {error}")

    def _named(self, number: int, report: Report) -> Report:
        return lambda line: report(f"{self._names[number]}: {line}")

    def _update(self, number: int, progress: Progress) -> None:
        self._latest[number] = progress
        trials = sum(run.pace.trials for run in self.runs)
        resumed = sum(state.resumed for run in self.runs for state in run.states)
        spent = BudgetUse(trials, trials - resumed, self._budget.trials, progress.elapsed, progress.left)
        self._reporter.update(replace(progress, whole=WholeRun(spent, tuple(latest for _, latest in sorted(self._latest.items())))))
