"""Tasks that can be tuned and asked for their best program. Source: TVM 0.9, `auto_scheduler.search_task`."""

from __future__ import annotations

from pathlib import Path

from ansor.compat.auto_scheduler.cost_models import XGBModel
from ansor.compat.auto_scheduler.declared_task import DeclaredTask, recovered, recovered_as
from ansor.compat.auto_scheduler.dispatcher import DispatchContext
from ansor.compat.auto_scheduler.history import BestProgram, best_of
from ansor.compat.auto_scheduler.measured import LayoutRewriteOption, MeasureInput
from ansor.compat.auto_scheduler.search_policy import EmptyPolicy, SketchPolicy
from ansor.compat.auto_scheduler.tune import TuningOptions
from ansor.errors import TargetError
from ansor.manual.program import lower, source_of
from ansor.run.states import TaskState
from ansor.schedule.sketch import Sketch
from ansor.te.tensor import Tensor

PRINT_MODES = ("schedule", "loops", "source")


class SearchTask(DeclaredTask):
    """A computation, and the machine that runs it. See `DeclaredTask` for the arguments."""

    def tune(self, tuning_options: TuningOptions, search_policy: EmptyPolicy | SketchPolicy | None = None) -> TaskState:
        """Measure programs as the options say, by default with our search and an XGBModel. Results go to the log, and to the returned state."""
        return (search_policy or SketchPolicy(self, XGBModel(), verbose=tuning_options.verbose)).search(tuning_options)

    def apply_best(
        self, log_file: str | Path | None = None, include_compatible: bool = False, layout_rewrite_option: LayoutRewriteOption | None = None
    ) -> tuple[Sketch, list[Tensor]]:
        """The best program of a log, and the tensors it takes. Without a log, uses the enclosing `ApplyHistoryBest`.

        include_compatible: also use programs of workloads that differ only in numbers. Raises RecordError if there is none.
        """
        return self._best(log_file, include_compatible).schedule(layout_rewrite_option), self.compute_dag.tensors

    def print_best(self, log_file: str | Path | None = None, print_mode: str = "schedule") -> str:
        """The best program of a log as text: its steps as Python ("schedule"), its loops ("loops") or its C text ("source")."""
        found = self._best(log_file, False)
        if print_mode not in PRINT_MODES:
            raise TargetError(f"asked to print the best program as {print_mode!r}; modes are {', '.join(PRINT_MODES)}")
        if print_mode == "schedule":
            return found.text
        return str(lower(found.schedule())) if print_mode == "loops" else source_of(found.schedule(), self.local_target).text

    def _best(self, log_file: str | Path | None, include_compatible: bool) -> BestProgram:
        return DispatchContext.current.best(self) if log_file is None else best_of(self, log_file, include_compatible)


def recover_measure_input(inp: MeasureInput, rebuild_state: bool = False) -> MeasureInput:
    """Complete the task of a measurement from a log; with `rebuild_state` also its state, by applying the steps to the declaration.

    Raises DeclarationError for a workload that is not registered here, ScheduleError for steps that do not fit it.
    """
    return recovered(inp, rebuild_state, SearchTask)


def recovered_task(task: object) -> SearchTask:
    """Complete a task from a log."""
    return recovered_as(SearchTask, task)
