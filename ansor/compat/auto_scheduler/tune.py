"""Tunes tasks with our search under TVM's API, and logs every measurement. Source: TVM 0.9, `auto_scheduler.search_task`.

    options = TuningOptions(num_measure_trials=200, measure_callbacks=[RecordToFile("log.json")])
    task.tune(options)
    sch, args = task.apply_best("log.json")
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal

from ansor.compat.auto_scheduler.callbacks import MeasureCallback, RecordToFile
from ansor.compat.auto_scheduler.cost_models import Model, PythonBasedModel, RandomModel
from ansor.compat.auto_scheduler.declared_task import DeclaredTask
from ansor.compat.auto_scheduler.export import state_of, without
from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.measured import MeasureInput
from ansor.compat.auto_scheduler.measuring import LocalBuilder, LocalRunner, RPCRunner, measured
from ansor.compat.auto_scheduler.state_model import StateModel
from ansor.errors import ScheduleError, TargetError
from ansor.ir.simplify import simplified
from ansor.measure.measurer import Measurer
from ansor.measure.record import Header, Record, RecordFile, make_header
from ansor.run.budget import Budget
from ansor.run.options import ROUND, Rounds, SearchOptions, Trials
from ansor.run.reporter import Callbacks, Report, quiet
from ansor.run.scoring_model import GIVEN
from ansor.run.states import TaskState
from ansor.run.tuning import OnRound, TuningRun
from ansor.run.zero_tuning import pick
from ansor.schedule.sketch import Sketch
from ansor.search.tuner import Outcome, TunerOptions
from ansor.support.text import counted
from ansor.tasks import task as tasks
from ansor.tasks.sketch_space import SketchSpace


class TuningOptions:
    """Options of a tuning run.

    num_measure_trials: how many programs to measure; 0 measures none. early_stopping: stop after that many programs without improvement.
    num_measures_per_round: the maximum number of programs per round; our rounds have at most 16. builder, runner: "local", or a LocalBuilder and a
    LocalRunner or RPCRunner. measure_callbacks: called after each measurement; RecordToFile logs it.

    Raises TargetError for another builder or runner.
    """

    def __init__(
        self,
        num_measure_trials: int = 0,
        early_stopping: int | None = None,
        num_measures_per_round: int = 64,
        verbose: int = 1,
        builder: Literal["local"] | LocalBuilder = "local",
        runner: Literal["local"] | LocalRunner = "local",
        measure_callbacks: Sequence[MeasureCallback] | None = None,
    ) -> None:
        for given, kind in ((builder, LocalBuilder), (runner, LocalRunner)):
            if given != "local" and not isinstance(given, kind):
                raise TargetError(f"asked to tune with {given!r:.80}; give 'local' or a {kind.__name__}: programs are measured on this machine")
        self.num_measure_trials, self.early_stopping, self.num_measures_per_round = num_measure_trials, early_stopping, num_measures_per_round
        self.verbose, self.builder, self.runner = verbose, builder, runner
        self.measure_callbacks = list(measure_callbacks or ())

    def measurer(self, task: DeclaredTask) -> Measurer:
        """Builds and runs programs."""
        target = task.local_target
        timing = self.runner.timing if isinstance(self.runner, LocalRunner) else None
        builder = self.builder if isinstance(self.builder, LocalBuilder) else LocalBuilder()
        devices = self.runner.devices if isinstance(self.runner, RPCRunner) else None
        return Measurer(target, devices, timing=timing, build_timeout=builder.timeout, jobs=builder.n_parallel)


@dataclass(frozen=True, eq=False)
class Search:
    """The search of one task. local: the same task for our search; known: measured programs to start from; policy: passed to callbacks."""

    task: DeclaredTask
    local: tasks.SearchTask
    known: Sequence[Outcome] = ()
    policy: object = None


def run(
    searches: Sequence[Search],
    options: TuningOptions,
    model: Model,
    *,
    weights: Sequence[float] | None = None,
    rounds: Rounds | None = None,
    watch: Callable[[TuningRun], OnRound] | None = None,
    tuner: TunerOptions | None = None,
    seed: int = 0,
) -> list[TaskState]:
    """Tune tasks together. `watch` returns the hook around rounds. Raises TargetError if their targets differ."""
    say: Report = print if options.verbose else quiet
    targets = sorted({str(search.task.local_target) for search in searches})
    if len(targets) > 1:
        raise TargetError(f"asked to tune tasks for {', '.join(targets)} in one run; give all of them one target")
    ours = StateModel(model, [search.task for search in searches], [search.local for search in searches]) if isinstance(model, PythonBasedModel) else None
    guided = not isinstance(model, PythonBasedModel | RandomModel)
    locals_ = [search.local for search in searches] if ours is None else ours.locals
    with options.measurer(searches[0].task) as measurer:
        header = make_header(measurer.toolchain, seed=seed)
        with _Log(dict(zip(map(id, locals_), searches, strict=True)), options.measure_callbacks, header) as log:
            how = SearchOptions(
                seed, ours if isinstance(model, PythonBasedModel) else model.model, options.early_stopping if len(searches) == 1 else None,
                partial(pick, seed=seed) if guided else None, tuner or TunerOptions(), GIVEN if isinstance(model, PythonBasedModel) else model.called,
            )  # fmt: skip
            tuning = TuningRun(
                locals_, weights, measurer=measurer, budget=Budget.of(options.num_measure_trials), search=how, callbacks=Callbacks(say),
                trials=Trials(known=[search.known for search in searches], log=log),
                rounds=rounds or Rounds(min(ROUND, options.num_measures_per_round)),
            )  # fmt: skip
            tuning.on_round = None if watch is None else watch(tuning)
            try:
                tuning.run()
            except KeyboardInterrupt:
                say("stopped by Ctrl-C: the best programs so far are used")
            log.tell(say)
    return tuning.states


def state_of_row(task: DeclaredTask, space: SketchSpace, row: Sequence[int]) -> State:
    """A program of our search as a state. Raises ScheduleError if no state reads back as the same program."""
    if space.algorithm:
        raise without(f"the algorithm {space.algorithm}")
    program = Sketch(task.compute_dag.dag, space.sketch.concrete_steps(row))
    state = state_of(task.compute_dag, program)
    again = task.compute_dag.replay(state)
    if again.notes or str(simplified(again.lowered)) != str(simplified(program.lower_row(()))):
        raise without("this program exactly")
    return state


class _Log(AbstractContextManager["_Log"]):
    """Calls the callbacks for every trial. Programs that TVM's steps cannot express go to an ansor record file next to the log."""

    def __init__(self, searches: dict[int, Search], callbacks: Sequence[MeasureCallback], header: Header) -> None:
        self._searches = searches
        self._callbacks = callbacks
        self._header = header
        self._files: dict[Path, RecordFile] = {}
        self._reasons = Counter[str]()

    def __call__(self, local: tasks.SearchTask, space: SketchSpace, record: Record) -> bool:
        """Log a trial. Returns True: the run need not record it."""
        search = self._searches[id(local)]
        try:
            state = state_of_row(search.task, space, record.row)
        except ScheduleError as error:
            self._reasons[str(error).removeprefix("asked to write ").partition(";")[0]] += 1
            for callback in self._callbacks:
                if isinstance(callback, RecordToFile):
                    self._own(callback.own_file).append(record)
            return True
        result = measured(record.costs, record.failure, record.elapsed, record.timestamp)
        for callback in self._callbacks:
            callback.callback(search.policy, [MeasureInput(search.task, state)], [result])
        return True

    def _own(self, path: Path) -> RecordFile:
        if path not in self._files:
            self._files[path] = RecordFile(path, self._header)
        return self._files[path]

    def tell(self, say: Report) -> None:
        """Print once how many programs are not in the log, and where they are."""
        if self._reasons and self._files:
            count, names = sum(self._reasons.values()), ", ".join(map(str, self._files))
            say(f"{counted(count, 'program')} cannot be expressed in TVM's log format: kept in {names} (first reason: {next(iter(self._reasons))})")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for file in self._files.values():
            file.close()
