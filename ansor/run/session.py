"""A tuning run, with its compiler and measuring processes, for the entry points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from ansor.errors import ArgumentError
from ansor.measure.build_pool import BuildPool
from ansor.measure.measurer import Measurer
from ansor.run.choosing import is_tunable, say_unused
from ansor.run.keywords import RunOptions
from ansor.run.options import Rounds, Trials
from ansor.run.refused import check_possible, impossible
from ansor.run.reporter import Reporter
from ansor.run.several_targets import TargetTasks, check_apart, check_shared, devices_by_target, tasks_by_target
from ansor.run.side_by_side import run_side_by_side
from ansor.run.states import TaskState
from ansor.run.targets_reporter import TargetsReporter
from ansor.run.tuning import TuningRun
from ansor.support.termination import Requested, Terminated
from ansor.tasks.task import SearchTask


def tuned(tasks: Sequence[SearchTask], weights: Sequence[float] | None, asked: RunOptions, reporter: Reporter) -> list[TaskState]:
    """Tune tasks, of several targets side by side; return them with the best programs found. Ctrl-C ends the run early; before the first trial it passes
    through.

    Raises MeasureError for a task that has no program its target's devices can run."""
    check_possible(tasks)
    groups = tasks_by_target(tasks)
    shared = TargetsReporter([group.name for group in groups], asked.budget, reporter)
    reporter.now("starting the C compiler and the measuring process")
    with _measurers(groups, asked, shared) as measurers:
        shared.runs = runs = _runs(tasks, weights, groups, measurers, asked, shared)
        try:
            run_side_by_side(runs, shared.gave_up) if len(runs) > 1 else runs[0].run()
        except KeyboardInterrupt as stopped:
            if not any(state.trials for run in runs for state in run.states):  # nothing to continue with
                raise type(stopped)("before the first trial ended; no trials were recorded") from stopped
            _say_stopped(stopped, asked.kept, reporter)
    found = {place: state for group, run in zip(groups, runs, strict=True) for place, state in zip(group.places, run.states, strict=True)}
    return [found[place] for place in range(len(tasks))]


def _say_stopped(stopped: KeyboardInterrupt, kept: str, reporter: Reporter) -> None:
    """Report an early end; one that the caller's own function asked for needs no warning."""
    text = f"the best programs so far are used; {kept or 'the trials are in no file, as no records= were given'}"
    if isinstance(stopped, Requested):
        reporter.say(f"stopped by on_progress: {text}")
    else:
        reporter.alarm(f"stopped by {'SIGTERM' if isinstance(stopped, Terminated) else 'Ctrl-C'}: {text}")


@contextmanager
def _measurers(groups: Sequence[TargetTasks], asked: RunOptions, reporter: TargetsReporter) -> Iterator[list[Measurer]]:
    """A measurer for each target; all share the compiler's processes. Raises DeviceError for a device that cannot measure while programs are built."""
    devices = devices_by_target([group.name for group in groups], asked.devices)
    check_shared(groups, devices)
    if len(groups) > 1 and not isinstance(asked.search.model, str | None):
        raise ArgumentError("asked to tune for several targets with one cost model, which learns the costs of one; leave model out, or tune for one at a time")
    with ExitStack() as opened:
        jobs, measurers = opened.enter_context(BuildPool()), list[Measurer]()
        for number, (group, of_target) in enumerate(zip(groups, devices, strict=True)):
            measurer = Measurer(group.target, of_target, timing=asked.timing, jobs=jobs, say=reporter.alarm(number))
            measurers.append(opened.enter_context(measurer))
        if len(groups) > 1:
            check_apart(measurers)
        yield measurers


def _runs(
    tasks: Sequence[SearchTask], weights: Sequence[float] | None, groups: Sequence[TargetTasks], measurers: Sequence[Measurer], asked: RunOptions,
    reporter: TargetsReporter,
) -> list[TuningRun]:  # fmt: skip
    """A run for each target, which shares the budget with the others; the time is the same for all."""
    budgets = asked.budget.split([len(group.places) for group in groups])
    several = len(groups) > 1
    trials = Trials(asked.records, targets=frozenset(str(task.target) for task in tasks) if several else ())
    rounds = Rounds(started=Rounds().clock()) if several else Rounds()
    return [
        TuningRun(
            [tasks[place] for place in group.places], None if weights is None else [weights[place] for place in group.places], measurer=measurer,
            budget=budget, search=asked.search, rounds=rounds, trials=trials, callbacks=reporter.callbacks(number),
        )
        for number, (group, measurer, budget) in enumerate(zip(groups, measurers, budgets, strict=True))
    ]  # fmt: skip


def tune_states(states: dict[str, TaskState], asked: RunOptions, reporter: Reporter) -> None:
    """Tune the tasks that are worth tuning, if asked for, and replace their states."""
    if not asked.measures:
        say_unused(states.values(), asked.records, reporter.say, reporter.alarm)
        return
    tunable = []
    for state in (state for state in states.values() if is_tunable(state.task)):
        why = impossible(state.task)
        if why:
            reporter.alarm(f"{why}; it is chosen without measuring")
        else:
            tunable.append(state)
    if tunable:
        found = tuned([state.task for state in tunable], [state.weight for state in tunable], asked, reporter)
        states.update((state.task.workload_key, state) for state in found)
