"""Chooses the program of a task to build: the best measured one, the best recorded one, or the model's pick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from ansor.cost_model.base import CostModel
from ansor.errors import ScheduleError
from ansor.ir import access
from ansor.run.refused import refusal
from ansor.run.reporter import Report
from ansor.run.states import Best, Guess, TaskState, best_of_recorded, leading
from ansor.run.zero_tuning import as_declared, pick
from ansor.tasks.recorded import recorded_outcomes, say_left_out
from ansor.tasks.task import SearchTask


def recorded_state(task: SearchTask, records: str | Path | None, weight: float = 1.0) -> TaskState:
    """A task with what a record file knows about it; nothing is measured."""
    if records is None or not Path(records).exists():
        return TaskState(task, weight)
    found = recorded_outcomes(task, records)
    best = best_of_recorded(task, found)
    failed = [record for _, record in found.known if record.failure is not None] if best is None else []
    kinds = Counter(record.failure.kind for record in failed if record.failure is not None)
    state = TaskState(task, weight, best=best, trials=len(failed), failures=kinds, left_out=Counter(found.left_out))
    for outcome in (outcome for outcome, _ in found.known if outcome.cost is not None):
        state.leaders = leading(task, state.leaders, outcome, found.unit)
    return state


def recorded_states(tasks: Sequence[tuple[SearchTask, float]], records: str | Path | None) -> dict[str, TaskState]:
    """Workload key -> state. Different groups of the graph may declare the same computation; they become one task with their combined uses."""
    states: dict[str, TaskState] = {}
    for task, weight in tasks:
        if task.workload_key in states:
            states[task.workload_key].weight += weight
        else:
            states[task.workload_key] = recorded_state(task, records, weight)
    return states


def say_unused(states: Collection[TaskState], records: str | Path | None, say: Report, alarm: Report) -> None:
    """Report records of these tasks that do not count, and damaged lines, if there are any. This is an alarm if nothing in the file counts."""
    if records is not None and Path(records).exists():
        none_counts = all(state.best is None for state in states)
        say_left_out([state.left_out for state in states], records, alarm if none_counts else say, alarm)


def is_tunable(task: SearchTask) -> bool:
    """True for tasks with a reduction: the others only copy with some arithmetic, for which the model's pick is good enough."""
    return any(access.has_reduction(stage) for stage in task.dag.stages)


def chosen(state: TaskState, model: CostModel | str | None = None, seed: int = 0) -> Best:
    """The best measured program; the model's pick if nothing was measured; the plain declaration if every measured program failed.

    Raises ScheduleError if the target's devices cannot run that and there is no other program.
    """
    if state.best is not None:
        return state.best
    if state.guess is None and not state.task.target.plain_loops:
        state.guess = _scheduled(state, model, seed)
    if state.guess is None:
        state.guess = as_declared(state.task, _all_failed(state)) if state.trials else pick(state.task, model, seed=seed)
    return state.guess.program


def contending(state: TaskState, best: Best) -> tuple[Best, ...]:
    """The programs that a network may choose from: the chosen one, then other measured ones that are nearly as fast."""
    return (best, *(one for one in state.leaders if (one.sketch, one.row) != (best.sketch, best.row)))


def _scheduled(state: TaskState, model: CostModel | str | None, seed: int) -> Guess:
    """The model's pick. Raises ScheduleError if it would be the plain declaration."""
    task, why = state.task, state.task.target.refusal(state.task.dag)
    asked = f"asked for a program of {task.name} for {task.target}"
    if why:
        raise ScheduleError(f"{asked}, but none can run there: {why}")
    if state.trials:
        first = "" if state.first_failure is None else f"; the first: {' '.join(state.first_failure.text.split())}"
        raise ScheduleError(f"{asked}, and {_all_failed(state)}{first}")
    found = pick(task, model, seed=seed)
    if found.refused:
        raise ScheduleError(refusal(task))
    return found


def _all_failed(state: TaskState) -> str:
    kinds = ", ".join(f"{kind} {count}" for kind, count in state.failures.most_common())
    return f"no measured program was valid{f' ({kinds})' if kinds else ''}"


def say_refused(states: Sequence[TaskState], alarm: Report) -> None:
    """Report each task for which the target allows no program of its sketches, unless the run has already reported it."""
    for state in states:
        if state.guess is not None and state.guess.refused and not state.refused:
            alarm(f"{refusal(state.task)}; using the plain loops of the declaration")


def say_guesses(states: Sequence[TaskState], report: Report, hint: bool = False) -> None:
    """Report programs chosen without measuring, if any, in one line. `hint`: also say how to measure, since the caller did not say whether to."""
    cure = "; give trials= or minutes= to tune" if hint else ""
    found = [(state.task.name, state.guess) for state in states if state.best is None and state.guess is not None]
    if len(found) == 1:
        ((name, guess),) = found
        share = "" if guess.confidence is None else f"; it is expected to reach {100 * guess.confidence:.0f} % of the speed of a tuned one"
        report(f"{name}: {guess.how}{share}{cure}")
    if len(found) < 2:
        return
    known = sorted((guess.confidence, name) for name, guess in found if guess.confidence is not None)
    mean = sum(confidence for confidence, _ in known) / max(len(known), 1)
    share = f"; they are expected to reach {100 * mean:.0f} % of the tuned speed, {known[0][1]} {100 * known[0][0]:.0f} %" if known else ""
    ways = Counter(guess.how for _, guess in found if guess.confidence is None)
    others = "".join(f"; {'all' if number == len(found) else number} {how}" for how, number in ways.items())
    who = "" if ways else " by the model"
    report(f"{len(found)} programs were picked{who} without measuring{share}{others}{cure}")
