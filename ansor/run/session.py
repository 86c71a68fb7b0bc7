"""A tuning run, with its compiler and measuring processes, for the entry points."""

from __future__ import annotations

from collections.abc import Sequence

from ansor.measure.measurer import Measurer
from ansor.run.choosing import is_tunable, say_unused
from ansor.run.keywords import RunOptions
from ansor.run.options import Trials
from ansor.run.refused import check_possible, impossible
from ansor.run.reporter import Reporter
from ansor.run.states import TaskState
from ansor.run.tuning import TuningRun
from ansor.tasks.task import SearchTask


def tuned(tasks: Sequence[SearchTask], weights: Sequence[float] | None, asked: RunOptions, reporter: Reporter) -> list[TaskState]:
    """Tune tasks of one target; return them with the best programs found. Ctrl-C ends the run early; before the first trial it passes through.

    Raises MeasureError for a task that has no program the target's devices can run."""
    target = tasks[0].target
    check_possible(tasks)
    reporter.now("starting the C compiler and the measuring process")
    with Measurer(target, asked.devices, timing=asked.timing, say=reporter.alarm) as measurer:
        trials = Trials(asked.records)
        run = TuningRun(tasks, weights, measurer=measurer, budget=asked.budget, search=asked.search, trials=trials, callbacks=reporter.callbacks)
        try:
            return run.run()
        except KeyboardInterrupt as stopped:
            if not any(state.trials for state in run.states):  # nothing to continue with
                raise type(stopped)("before the first trial ended; no trials were recorded") from stopped
            reporter.say("stopped by Ctrl-C: continuing with the best programs so far")
            return run.states


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
