"""The entry points: one operator, a network, and the names that users of Ansor know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ansor.algorithms.base import Algorithm
from ansor.codegen.toolchain import find_compiler
from ansor.cost_model.base import CostModel
from ansor.errors import ArgumentError, DeclarationError, RecordError, TargetError
from ansor.ir import access
from ansor.measure.kernel import Kernel
from ansor.measure.measurer import Measurer
from ansor.measure.record_place import check_place, make_place
from ansor.measure.timing import TimingOptions
from ansor.rules.base import SketchRule
from ansor.run.budget import Budget
from ansor.run.kernels import NetworkKernel, built
from ansor.run.library_choice import assembled, runs_here
from ansor.run.machine_checks import check_machine
from ansor.run.recorded import recorded_outcomes, say_left_out
from ansor.run.tuning import Best, OnProgress, Report, TaskState, TuningRun, best_of_recorded, quiet
from ansor.run.views import View, Voice, view_of
from ansor.run.zero_tuning import as_declared, pick
from ansor.schedule.sketch import Sketch
from ansor.search.derive import derive_sketches
from ansor.support.notices import warn
from ansor.support.text import counted
from ansor.targets.base import Target, parse_target
from ansor.tasks.arguments import check_arguments
from ansor.tasks.pins import Pin
from ansor.tasks.task import SearchTask, Workload
from ansor.te.tensor import Tensor

if TYPE_CHECKING:
    from ansor.graph.export import ExampleInputs
    from ansor.graph.network import CompiledNetwork
    from ansor.templates.beside_rules import Template


class ExtractedTasks(NamedTuple):
    """The tuning tasks of a network, and how often it runs each: `tasks, weights = extracted`, and `tune_tasks(extracted)`."""

    tasks: list[SearchTask]
    weights: list[int]

    def __repr__(self) -> str:
        shown = ", ".join(f"{weight} x {task.name}" for task, weight in zip(self.tasks, self.weights, strict=True))
        return f"ExtractedTasks({counted(len(self.tasks), 'task')}: {shown})"


def tune_tasks(
    tasks: ExtractedTasks | Sequence[SearchTask] | SearchTask,
    weights: Sequence[float] | None = None,
    *,
    trials: int | None = None,
    minutes: float | None = None,
    min_gain: float | None = None,
    records: str | Path | None = None,
    seed: int = 0,
    model: CostModel | None = None,
    timing: TimingOptions | None = None,
    early_stop: int | None = None,
    progress: bool | View | None = None,
    report: Report = quiet,
    on_progress: OnProgress = quiet,
) -> list[TaskState]:
    """Tune tasks that share one target within `trials` measured programs, `minutes` of wall time, or both; the states hold the best program of each.

    tasks: a list, one task, or what `extract_tasks` gives of a network, which brings its weights along.
    min_gain: end early when the rest of the budget is expected to save less than this share of the time of the programs (`ansor.search.expected_gain`).
    By default that is 0.01 with `minutes` alone, and never with `trials`. Ctrl-C ends the run early; what was measured so far counts.
    Before anything was measured, it raises KeyboardInterrupt.
    early_stop: end a task after so many trials without a better program. The other arguments are those of `auto_schedule`.

    Raises BudgetError without a sensible budget, ArgumentError for an argument of a wrong kind, ToolchainError when no compiler works, RecordError for an
    unusable `records` file.
    """
    Budget.of(trials, minutes, min_gain)  # mistakes show before a compiler is started
    check_arguments(
        records=records, seed=seed, model=model, timing=timing, early_stop=early_stop, progress=progress, report=report, on_progress=on_progress,
    )  # fmt: skip
    tasks, weights = _weighted(tasks, weights)
    if not tasks:
        return []
    _check_place(records, written=True)
    target = tasks[0].target
    if any(task.target != target for task in tasks):
        raise TargetError(f"asked to tune tasks for {', '.join(sorted({str(task.target) for task in tasks}))} in one run; give all of them one target")
    check_machine(target, measures=True)
    with view_of(progress, target) as view:
        return _tuned(
            tasks, weights, Voice(view, report, on_progress), trials=trials, minutes=minutes, min_gain=min_gain, records=records, seed=seed, model=model,
            timing=timing, early_stop=early_stop,
        )  # fmt: skip


def _tuned(
    tasks: Sequence[SearchTask],
    weights: Sequence[float] | None,
    voice: Voice,
    *,
    trials: int | None,
    minutes: float | None,
    min_gain: float | None,
    records: str | Path | None,
    seed: int,
    timing: TimingOptions | None,
    model: CostModel | None = None,
    early_stop: int | None = None,
) -> list[TaskState]:
    """`tune_tasks`, once its arguments are checked and somebody listens."""
    target = tasks[0].target
    voice.now("starting the C compiler and the measuring process")
    with Measurer(find_compiler(target.compiler), mcpu=target.mcpu, timing=timing, say=voice.alarm) as measurer:
        run = TuningRun(
            tasks, weights, trials=trials, minutes=minutes, min_gain=min_gain, measurer=measurer, records=records, seed=seed, model=model,
            early_stop=early_stop, first=partial(pick, seed=seed), report=voice.say, alarm=voice.alarm, on_progress=voice.update,
            now=voice.now,
        )  # fmt: skip
        try:
            return run.run()
        except KeyboardInterrupt:
            if not any(state.trials for state in run.states):  # nothing to go on with
                raise
            voice.say("stopped by Ctrl-C: going on with the best programs so far")
            return run.states


def _weighted(
    tasks: ExtractedTasks | Sequence[SearchTask] | SearchTask, weights: Sequence[float] | None
) -> tuple[Sequence[SearchTask], Sequence[float] | None]:
    """Tasks and their weights. Raises ArgumentError for anything but tasks, and for another number of weights."""
    if isinstance(tasks, SearchTask):
        return _weighted([tasks], weights)
    if isinstance(tasks, ExtractedTasks):
        return _weighted(tasks.tasks, tasks.weights if weights is None else weights)
    wrong = [task for task in tasks if not isinstance(task, SearchTask)] if isinstance(tasks, Iterable) else [tasks]
    if wrong:
        raise ArgumentError(f"asked to tune a {type(wrong[0]).__name__} ({wrong[0]!r:.80}); give SearchTasks, or what ansor.extract_tasks gives")
    if weights is not None and len(weights) != len(tasks):
        raise ArgumentError(f"asked to tune {counted(len(tasks), 'task')} with {counted(len(weights), 'weight')}; give one weight for each task")
    return tasks, weights


def chosen(state: TaskState, model: CostModel | None = None, seed: int = 0) -> Best:
    """The best measured program; what the model picks when nothing was measured; the plain declaration when all that was measured failed."""
    if state.best is not None:
        return state.best
    if state.guess is None:
        state.guess = as_declared(state.task, _all_failed(state)) if state.trials else pick(state.task, model, seed=seed)
    return state.guess.program


def _all_failed(state: TaskState) -> str:
    kinds = ", ".join(f"{kind} {count}" for kind, count in state.failures.most_common())
    return f"no measured program was valid{f' ({kinds})' if kinds else ''}"


def say_guesses(states: Sequence[TaskState], report: Report, hint: bool = False) -> None:
    """One line about the programs that were chosen without measuring, if there are any. `hint`: say how to measure, as nobody asked for it or against it."""
    cure = "; give trials= or minutes= to tune" if hint else ""
    found = [(state.task.name, state.guess) for state in states if state.best is None and state.guess is not None]
    if len(found) == 1:
        ((name, guess),) = found
        share = "" if guess.confidence is None else f"; expected to have {100 * guess.confidence:.0f} % of the speed of a tuned program"
        report(f"{name}: {guess.how}{share}{cure}")
    if len(found) < 2:
        return
    known = sorted((guess.confidence, name) for name, guess in found if guess.confidence is not None)
    mean = sum(confidence for confidence, _ in known) / max(len(known), 1)
    share = f"; expected to have {100 * mean:.0f} % of the speed of tuned ones, {100 * known[0][0]:.0f} % for {known[0][1]}" if known else ""
    others = f"; {len(found) - len(known)} not by the model" if len(known) < len(found) else ""
    report(f"{len(found)} programs were chosen without measuring{share}{others}{cure}")


def auto_schedule(
    func: Workload | SearchTask,
    args: Sequence[object] = (),
    target: str | Target | None = None,
    *,
    trials: int | None = None,
    minutes: float | None = None,
    min_gain: float | None = None,
    records: str | Path | None = None,
    seed: int = 0,
    model: CostModel | None = None,
    rules: Sequence[str | SketchRule] | None = None,
    algorithms: Sequence[str | Algorithm] | None = None,
    templates: Sequence[Template] = (),
    pins: Sequence[Pin] = (),
    timing: TimingOptions | None = None,
    early_stop: int | None = None,
    progress: bool | View | None = None,
    report: Report = quiet,
    on_progress: OnProgress = quiet,
) -> Kernel:
    """Find a fast program for a declaration and build it.

    Args:
        func: a function that returns the tensors (inputs and outputs), the name of a registered one or of a built-in operator (`"matmul"`), the tensors
            themselves, one computed tensor, or a SearchTask, which has its own arguments, target, rules and so on.
        args: the function's arguments.
        target: such as `cpu -threads=1`; this machine, all its cores, by default.
        trials: programs to measure. Without `trials` and `minutes`, or with 0 trials, nothing is measured: the best recorded program is taken, or the one that
            the model picks. `compile` has the same rule.
        minutes: of tuning, alone or beside `trials`, whichever ends first. The round in progress may end a little later, and building the kernel takes seconds
            more.
        min_gain: end early when the rest of the budget is expected to make the kernel faster by less than this share; by default 0.01 with `minutes`
            alone, and 0, which is never, with `trials`.
        records: a file to continue from and to append to.
        rules: sketch rules instead of the target's own, names or values.
        algorithms: which other algorithms are searched along, names or functions; all by default, () for the declaration as it is.
        templates: of `ansor.autotvm`, searched along: names, functions, or tasks of theirs; with `rules=()` nothing else is searched. `func` may be one itself.
            `report` says which of all made the fastest program, and so does the kernel's `origin`.
        pins: what is fixed of sketches, such as `ansor.Pin("C*.j", (..., 16))`; the search finds the rest.
        seed: of the search; the same seed finds the same programs where the same times are measured.
        model: a cost model of `ansor.cost_model` instead of the package's own.
        timing: how programs are timed: repeats, time limits, cold caches (`ansor.TimingOptions`).
        early_stop: end after so many trials without a better program.
        progress: True shows a bar with the best program so far, False nothing; None shows it on a terminal (on stderr) and in notebooks.
        report: gets each line worth keeping, such as `print`, instead of the progress display. The logger `ansor` gets them, too, as INFO.
        on_progress: is called with an `ansor.Progress` after each trial; raise KeyboardInterrupt in it to end with the best program so far.

    Returns a kernel: call it with NumPy arrays or torch tensors. Constants are arguments like any other unless `bind_constants` binds them.
    Raises BudgetError, ArgumentError and TargetError for arguments that cannot be meant, DeclarationError and ScheduleError for what they describe.
    """
    if func is None:
        raise DeclarationError("asked to schedule None; give a function that returns tensors, the name of an operator, tensors, or a SearchTask")
    count = 0 if trials is None and minutes is None else trials
    Budget.of(count, minutes, min_gain)  # mistakes show before sketches are derived
    check_arguments(
        records=records, seed=seed, model=model, timing=timing, early_stop=early_stop, progress=progress, report=report, on_progress=on_progress,
    )  # fmt: skip
    _check_place(records, written=count != 0)
    task = _task_of(func, args, target, rules=rules, algorithms=algorithms, templates=templates, pins=pins)
    check_machine(task.target, measures=count != 0)
    with view_of(progress, task.target) as view:
        voice = Voice(view, report, on_progress)
        if count == 0:
            voice.now(f"deriving the programs of {task.name}")
            state = recorded_state(task, records)
            say_unused([state], records, voice.say, voice.alarm)
        else:
            (state,) = _tuned(
                [task], None, voice, trials=count, minutes=minutes, min_gain=min_gain, records=records, seed=seed, model=model, timing=timing,
                early_stop=early_stop,
            )  # fmt: skip
            if state.best is None and not state.trials:
                voice.say("no time to measure a program; the model picks one")
        voice.now(f"building {task.name}")
        program = chosen(state, model, seed)
        say_guesses([state], voice.say, hint=trials is None and minutes is None)
        return built([task], [program], find_compiler(task.target.compiler), voice.alarm)[0]


def _task_of(
    func: Workload | SearchTask,
    args: Sequence[object],
    target: str | Target | None,
    *,
    rules: Sequence[str | SketchRule] | None,
    algorithms: Sequence[str | Algorithm] | None,
    templates: Sequence[Template],
    pins: Sequence[Pin],
) -> SearchTask:
    """The task; one that was given as such has all of this already."""
    if not isinstance(func, SearchTask):
        target = "cpu" if target is None else target
        return SearchTask(func, args, target, rules=rules, algorithms=algorithms, templates=templates, pins=pins)
    check_arguments(args=args, rules=rules, algorithms=algorithms, templates=templates, pins=pins)
    beside = {"args": args, "rules": rules, "algorithms": algorithms, "templates": templates, "pins": pins}
    given = [name for name, value in beside.items() if value is not None and len(list(value)) > 0]
    if given or target is not None and parse_target(target) != func.target:
        raise ArgumentError(f"asked for {func} with {', '.join(given) or f'target={target}'} beside it; a SearchTask has its own: give them to SearchTask(...)")
    return func


def recorded_state(task: SearchTask, records: str | Path | None, weight: float = 1.0) -> TaskState:
    """A task with what a record file knows of it; nothing is measured."""
    if records is None or not Path(records).exists():
        return TaskState(task, weight)
    found = recorded_outcomes(task, records)
    best = best_of_recorded(task, found)
    failed = [record for _, record in found.known if record.failure is not None] if best is None else []
    kinds = Counter(record.failure.kind for record in failed if record.failure is not None)
    return TaskState(task, weight, best=best, trials=len(failed), failures=kinds, left_out=Counter(found.left_out))


def say_unused(states: Collection[TaskState], records: str | Path | None, say: Report, alarm: Report) -> None:
    """A line about the records of these tasks, and damaged lines, that do not count, if there are any. It must be seen where nothing of the file counts."""
    if records is not None and Path(records).exists():
        none_counts = all(state.best is None for state in states)
        say_left_out([state.left_out for state in states], records, alarm if none_counts else say, alarm)


def _check_place(records: str | Path | None, written: bool) -> None:
    """Raises RecordError for a file that cannot be read, or written to: before any work is done."""
    if records is None:
        return
    (make_place if written else check_place)(Path(records))
    if not Path(records).exists():
        warn(f"records {records} do not exist, and nothing is measured, so no recorded program is used; check the path, or give trials= or minutes= to tune")


def extract_tasks(
    model: object, example_inputs: ExampleInputs, target: str | Target | None = None, *, report: Report | None = None
) -> ExtractedTasks:
    """The tuning tasks of a PyTorch module and how often the network runs each; groups without a reduction are left out. `tune_tasks` takes the result.

    Raises ModelError when the module cannot be exported.
    """
    from ansor.graph.tasks import extract

    target = parse_target("cpu" if target is None else target)
    extracted = extract(model, example_inputs, report)
    states = _states([(SearchTask(tensors=t.tensors, target=target, name=t.name), t.weight) for t in extracted.tasks], None)
    tunable = [state for state in states.values() if is_tunable(state.task)]
    return ExtractedTasks([state.task for state in tunable], [int(state.weight) for state in tunable])


def _states(tasks: Sequence[tuple[SearchTask, float]], records: str | Path | None) -> dict[str, TaskState]:
    """Workload key -> state. Groups that differ in the graph may declare one computation: they are one task with the uses of all."""
    states: dict[str, TaskState] = {}
    for task, weight in tasks:
        if task.workload_key in states:
            states[task.workload_key].weight += weight
        else:
            states[task.workload_key] = recorded_state(task, records, weight)
    return states


def is_tunable(task: SearchTask) -> bool:
    """True for tasks with a reduction: the others are a copy with arithmetic, for which what the model picks serves."""
    return any(access.has_reduction(stage) for stage in task.dag.stages)


def compile(
    model: object,
    example_inputs: ExampleInputs,
    target: str | Target | None = None,
    *,
    trials: int | None = None,
    minutes: float | None = None,
    min_gain: float | None = None,
    records: str | Path | None = None,
    seed: int = 0,
    timing: TimingOptions | None = None,
    early_stop: int | None = None,
    library: bool = True,
    progress: bool | View | None = None,
    report: Report = quiet,
    on_progress: OnProgress = quiet,
    on_tasks: Callable[[list[TaskState]], None] = quiet,
) -> CompiledNetwork:
    """Tune and compile a PyTorch module into one callable with the module's arguments and results.

    Args:
        model, example_inputs: the module, and its inputs as a tuple, or as a dict for keyword arguments. The network takes inputs of their shapes and dtypes.
        trials, minutes: the budget of all tasks together, one of them or both. As in `auto_schedule`, without a budget, or with 0 trials, nothing is measured:
            the best recorded programs are taken, or those that the model picks. Reading the module and building the kernels are not part of the budget.
        library: where PyTorch's own kernels are faster than ours on this machine, those run (on as many threads as PyTorch is set to); that is measured here,
            at most 0.1 s for each group, and recorded. False: our kernels run everywhere.
        on_tasks: gets all tasks once their programs are chosen.
        early_stop: end a task after so many trials without a better program; the others go on.
        target, min_gain, records, seed, timing, progress, report, on_progress: as in `auto_schedule`.

    Raises ModelError for a module that cannot be read, and what `auto_schedule` raises.
    """
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.tasks import extract

    count = 0 if trials is None and minutes is None else trials
    Budget.of(count, minutes, min_gain)  # mistakes show before the module is read
    check_arguments(
        records=records, seed=seed, timing=timing, early_stop=early_stop, progress=progress, report=report, on_progress=on_progress, on_tasks=on_tasks,
    )  # fmt: skip
    target = parse_target("cpu" if target is None else target)
    check_machine(target, measures=count != 0)
    _check_place(records, written=count != 0)
    with view_of(progress, target) as view:
        voice = Voice(view, report, on_progress)
        voice.now("reading the model")
        extracted = extract(model, example_inputs)
        tasks = [SearchTask(tensors=t.tensors, target=target, name=t.name) for t in extracted.tasks]
        states = _states([(task, float(t.weight)) for task, t in zip(tasks, extracted.tasks, strict=True)], records)
        tunable = [state for state in states.values() if is_tunable(state.task)]
        if count == 0:
            say_unused(states.values(), records, voice.say, voice.alarm)
        if count != 0 and tunable:
            tuned = _tuned(
                [state.task for state in tunable], [state.weight for state in tunable], voice,
                trials=count, minutes=minutes, min_gain=min_gain, records=records, seed=seed, timing=timing,
                early_stop=early_stop,
            )  # fmt: skip
            states.update((state.task.workload_key, state) for state in tuned)
        voice.now(f"choosing programs for {counted(len(tasks), 'kernel')}")
        bests = [chosen(states[task.workload_key], seed=seed) for task in tasks]
        on_tasks(list(states.values()))
        say_guesses([state for state in states.values() if is_tunable(state.task)], voice.say, hint=trials is None and minutes is None)
        voice.now(f"building {counted(len(tasks), 'kernel')}")
        kernels = built(tasks, bests, find_compiler(target.compiler) if tasks else None, voice.alarm)
        ours = [NetworkKernel(kernel) for kernel in kernels]
        if library and tasks and runs_here(target):
            voice.now("comparing with PyTorch's kernels")
            return assembled(extracted, tasks, bests, ours, records, voice.say)
        return CompiledNetwork(extracted, ours)


# names that users of Ansor know ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordToFile:
    """Append every trial to a file."""

    filename: str


@dataclass(frozen=True)
class TuningOptions:
    """num_measure_trials: programs to measure; minutes: of tuning, alone or beside it; early_stopping: stop after so many trials without a better one;
    measure_callbacks: `RecordToFile`s."""

    num_measure_trials: int = 0
    early_stopping: int | None = None
    measure_callbacks: Sequence[RecordToFile] = field(default_factory=list)
    seed: int = 0
    verbose: int = 1
    minutes: float | None = None


def tune(task: SearchTask, options: TuningOptions) -> TaskState:
    """Tune one task; the result is in the record file, and in the state returned. 0 trials without minutes measure nothing: what is recorded counts."""
    if not hasattr(options, "num_measure_trials"):
        raise ArgumentError(f"asked to tune with {options!r:.80}, which is a {type(options).__name__}; give ansor.TuningOptions(num_measure_trials=...)")
    files = [callback.filename for callback in options.measure_callbacks]
    if len(files) > 1:
        raise RecordError(f"asked to record to {len(files)} files ({', '.join(files)}); give one RecordToFile")
    say: Report = print if options.verbose else quiet
    records = files[0] if files else None
    if options.num_measure_trials == 0 and options.minutes is None:
        _check_place(records, written=False)
        state = recorded_state(task, records)
        say_unused([state], records, say, say if options.verbose else warn)
        return state
    return tune_tasks(
        [task], trials=options.num_measure_trials or None, minutes=options.minutes, records=records, seed=options.seed,
        early_stop=options.early_stopping, progress=None if options.verbose else False, report=say,
    )[0]  # fmt: skip


def apply_best(task: SearchTask, records: str | Path) -> tuple[Sketch, list[Tensor]]:
    """The best recorded schedule with all numbers filled in, and the tensors it belongs to. Raises RecordError when there is none."""
    state = recorded_state(task, records)
    say_unused([state], records, quiet, warn)
    best = state.best
    if best is None:
        raise RecordError(f"{records} has no valid record of {task.name} (workload {task.workload_key}) for target {task.target}; tune it first")
    return Sketch(best.sketch.dag, best.sketch.concrete_steps(best.row)), list(best.sketch.dag.tensors)


class SketchPolicy:
    """How a task is searched. `generate_sketches` shows the structures the rules derive; `rules` (names or values) replace the task's own."""

    def __init__(self, task: SearchTask, rules: Sequence[str | SketchRule] | None = None) -> None:
        self.task = task
        self.rules = task.rules if rules is None else tuple(rules)

    def generate_sketches(self, print_for_debug: bool = False) -> list[Sketch]:
        """Every sketch, in the order in which the rules derive them."""
        found = derive_sketches(self.task.dag, self.rules, self.task.target)
        for number, sketch in enumerate(found if print_for_debug else []):
            print(f"sketch {number}\n{sketch}\n")
        return found
