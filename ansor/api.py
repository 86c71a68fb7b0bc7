"""The entry points: `auto_schedule` for one operator, `compile` for a network, and names familiar from TVM's auto-scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from ansor.errors import ArgumentError, DeclarationError, RecordError, TargetError
from ansor.measure.device import Device
from ansor.measure.kernel import Kernel
from ansor.measure.measurer import Measurer
from ansor.measure.pack import Pack, load_pack
from ansor.measure.record import check_file
from ansor.rules.base import SketchRule
from ansor.run.choosing import chosen, is_tunable, recorded_state, recorded_states, say_guesses, say_refused, say_unused
from ansor.run.early_libraries import build_early
from ansor.run.keywords import ChoosingKeywords, ModelKeywords, NetworkKeywords, RunOptions, check_records
from ansor.run.machine_checks import check_loads_here, check_machine, check_tools
from ansor.run.packs import Imported, Model, expect, keep, measured, pack_records
from ansor.run.program import Program, results
from ansor.run.reporter import Report, Reporter, quiet
from ansor.run.session import tuned
from ansor.run.several_targets import tasks_by_target
from ansor.run.states import TaskState
from ansor.schedule.sketch import Sketch
from ansor.search.derive import derive_sketches
from ansor.support.loaded import needs_torch
from ansor.support.names import known_names
from ansor.support.notices import warn
from ansor.support.text import counted
from ansor.targets.base import Target, parse_target
from ansor.tasks.arguments import check_arguments, check_names, few_by_position, option_or_similar, takes_network
from ansor.tasks.extracted import ExtractedTasks
from ansor.tasks.task import Scope, SearchTask, Workload
from ansor.te.tensor import Tensor

if TYPE_CHECKING:
    from ansor.graph.export import ExampleInputs
    from ansor.graph.network import CompiledNetwork
    from ansor.graph.shared_constants import SharedConstants
    from ansor.integer.program import IntegerProgram


class ScheduleKeywords(ModelKeywords, Scope, total=False):
    """The keywords of `auto_schedule`: how a run proceeds, and what is searched."""


class CompileKeywords(NetworkKeywords, total=False):
    """The keywords of `compile`."""

    library: bool
    on_tasks: Callable[[list[TaskState]], None]


def tune_tasks(
    tasks: ExtractedTasks | Sequence[SearchTask] | SearchTask, weights: Sequence[float] | None = None, **options: Unpack[ModelKeywords]
) -> list[TaskState]:
    """Tune tasks within `trials` measured programs, `minutes` of wall time, or both. Return one state per task, in the same order, with its best program.

    tasks: a list, one task, or the result of `extract_tasks` or `extract_int8_tasks`, which includes the weights. The tasks may be for several targets. These
    are tuned in parallel, and each gets trials in proportion to its number of tasks (docs/boards.md, "Several boards").
    devices: as in `auto_schedule`; for several targets a dict, such as `{"micro -board=a": ["gdb://host:3333", "gdb://host:3334"], "micro -board=b": None}`,
    where None means the target's own device. If builds would disturb a device's measurements, as on this machine's processor, it needs a run of its own.
    options: trials, minutes, min_gain, records, seed, model, timing, early_stop, progress, report and on_progress, as in `auto_schedule`.
    min_gain: end early when the rest of the budget is expected to save less than this share of the programs' time (`ansor.search.expected_gain`).
    The default is 0.01 with `minutes` alone, and 0, which means never, with `trials`. Ctrl-C ends the run early and keeps what was measured.
    Before the first measurement, it raises KeyboardInterrupt.
    early_stop: end a task after this many trials without a better program.

    Raises BudgetError for a missing or invalid budget, ArgumentError for an argument of the wrong type, ToolchainError if no compiler works, RecordError for
    an unusable `records` file, and DeviceError if no device of a target is usable any more. With several targets, a DeviceError is reported at once and
    raised when the other targets have finished. Repeat the call to continue from `records`.
    """
    check_names("tune_tasks", options, ModelKeywords)
    asked = RunOptions.of(options, options.get("model"), needs_budget=True)  # reports errors before a compiler is started
    tasks, weights = _weighted(tasks, weights)
    if not tasks:
        return []
    asked.check_place(written=True)
    targets = [group.target for group in tasks_by_target(tasks)]
    asked.check_devices(targets)
    for target in targets:
        check_machine(target, measures=True)
        check_tools(target)
    with asked.reporter(tasks[0].target) as reporter:
        return tuned(tasks, weights, asked, reporter)


@known_names(hint=option_or_similar)
def create_pack(
    records: str | Path | Sequence[str | Path], tasks: ExtractedTasks | Sequence[SearchTask] | SearchTask | None = None,
    weights: Sequence[float] | None = None, *, target: str | Target | None = None, best: int = 3, of: str = "",
) -> Pack:  # fmt: skip
    """Collect the best programs of record files in a kernel pack, which `save` writes to one file.

    tasks: what to pack, such as the result of `extract_tasks`; by default all workloads in the files. target: use only records for it; by default the tasks'
    target, or else the target that all records share. best: the number of programs per task. of: the name of what is packed. Raises RecordError if there is no
    program, and for records of several targets, processors or devices.
    """
    if best < 1:
        raise ArgumentError(f"asked to pack the best {best} programs of each task; give a number of at least 1")
    files = [records] if isinstance(records, str | Path) else list(records)
    if tasks is None:
        return pack_records(files, None if target is None else parse_target(target), None, best=best, of=of)
    pairs = _pairs(tasks, weights)
    return pack_records(files, pairs[0][0].target, pairs, best=best, of=of)


@known_names(hint=option_or_similar)
def import_pack(
    pack: Pack | str | Path, tasks: ExtractedTasks | Sequence[SearchTask] | SearchTask, weights: Sequence[float] | None = None,
    *, measure: int = 0, records: str | Path | None = None, devices: Sequence[str | Device] | str | Device | None = None, model: Model = None,
) -> Imported:  # fmt: skip
    """Estimate how well the programs of a kernel pack, or of its file, perform on this machine, for tasks that share a target.

    measure: the number of programs per task to measure again, starting with the originally fastest; they are verified like all others and added to `records`.
    With `records` alone, the pack's times are added if they are valid here: the same target, processor and compiler. model: predicts times, as in
    `auto_schedule`. Raises RecordError for a damaged file, a pack without a program for the tasks, and times that are not valid here.
    """
    pairs = _pairs(tasks, weights)
    target = pairs[0][0].target
    if measure < 0 or measure and records is None:
        raise ArgumentError(f"asked to import a pack with measure={measure}{'' if records else ' and no records'}; give a number of at least 0, and records")
    loaded = pack if isinstance(pack, Pack) else load_pack(pack)
    if records is not None:
        check_file(Path(records))
    found = expect(loaded, pairs, model)
    if not measure:
        return found if records is None else keep(found, records)
    assert records is not None
    check_machine(target, measures=True)
    check_tools(target)
    with Measurer(target, devices) as measurer:
        return measured(found, measure, records, measurer)


def _pairs(tasks: ExtractedTasks | Sequence[SearchTask] | SearchTask, weights: Sequence[float] | None) -> list[tuple[SearchTask, float]]:
    """The distinct tasks and how often each is used. Raises ArgumentError if there are none, and TargetError if they do not share a target."""
    tasks, weights = _weighted(tasks, weights)
    if not tasks:
        raise ArgumentError("asked for a pack of no tasks; give at least one SearchTask")
    _check_one_target(tasks)
    states = recorded_states(list(zip(tasks, weights or [1.0] * len(tasks), strict=True)), None)
    return [(state.task, state.weight) for state in states.values()]


def _check_one_target(tasks: Sequence[SearchTask]) -> None:
    if len({task.target for task in tasks}) > 1:
        raise TargetError(f"asked to use tasks for {', '.join(sorted({str(task.target) for task in tasks}))} in one run; give all of them one target")


def _weighted(
    tasks: ExtractedTasks | Sequence[SearchTask] | SearchTask, weights: Sequence[float] | None
) -> tuple[Sequence[SearchTask], Sequence[float] | None]:
    """Tasks and their weights. Raises ArgumentError for anything but tasks, and if there is not one weight per task."""
    if isinstance(tasks, SearchTask):
        return _weighted([tasks], weights)
    if isinstance(tasks, ExtractedTasks):
        return _weighted(tasks.tasks, tasks.weights if weights is None else weights)
    wrong = [task for task in tasks if not isinstance(task, SearchTask)] if isinstance(tasks, Iterable) else [tasks]
    if wrong and isinstance(wrong[0], ExtractedTasks):
        raise ArgumentError(f"asked to tune a list of {wrong[0]!r:.80}; give all their tasks in one list, and all their weights in another")
    if wrong:
        raise ArgumentError(f"asked to tune a {type(wrong[0]).__name__} ({wrong[0]!r:.80}); give SearchTasks, or what ansor.extract_tasks returns")
    if weights is not None and len(weights) != len(tasks):
        raise ArgumentError(f"asked to tune {counted(len(tasks), 'task')} with {counted(len(weights), 'weight')}; give one weight for each task")
    return tasks, weights


@few_by_position
def auto_schedule(
    func: Workload | SearchTask, args: Sequence[object] = (), target: str | Target | None = None, **options: Unpack[ScheduleKeywords]
) -> Kernel | Program:
    """Find a fast program for a declaration and build it.

    Args:
        func: a function that returns the tensors (inputs and outputs), the name of a registered function or of a built-in operator (`"matmul"`), the tensors
            themselves, one computed tensor, or a SearchTask, which has its own arguments, target and rules.
        args: the function's arguments.
        target: such as `cpu -threads=1`; by default this machine with all its cores.
        trials: programs to measure. Without `trials` and `minutes`, or with 0 trials, nothing is measured: the best recorded program is used, or the one that
        the model picks. `compile` has the same rule.
        minutes: tuning time, alone or with `trials`; the first to run out ends the run. The round in progress may end a little later, and building the kernel
        takes a few seconds more.
        min_gain: end early when the rest of the budget is expected to make the kernel faster by less than this share; by default 0.01 with `minutes`
        alone, and 0, which means never, with `trials`.
        records: a file to continue from and to append to.
        devices: where to measure programs: a device, its name or URL, or several of one model; by default the target's own (`ansor devices` lists them).
        rules: sketch rules, by name or value, that replace the target's own.
        algorithms: other algorithms to search as well, by name or as functions; by default all, () for only the declaration as written.
        templates: templates of `ansor.autotvm` to search as well: names, functions, or tasks made from them. With `rules=()` only templates are searched.
        `func` may itself be a template. `report` and the kernel's `origin` say where the fastest program comes from.
        pins: parts of the schedule to fix, such as `ansor.Pin("C*.j", (..., 16))`; the search finds the rest.
        seed: of the search; the same seed finds the same programs if the same times are measured.
        model: a cost model of `ansor.cost_model`, or 'package'; by default the model fitted to this machine (`ansor doctor --learn`), or else the package's.
        timing: how programs are timed: repeats, time limits, cold caches (`ansor.TimingOptions`).
        early_stop: end after this many trials without a better program.
        progress: True shows a bar with the best program so far, False nothing; None shows it on a terminal (on stderr) and in notebooks.
        report: a function, such as `print`, that gets each line worth keeping, instead of the progress display. The logger `ansor` also gets them, as INFO.
        on_progress: called with an `ansor.Progress` after each trial; raise KeyboardInterrupt in it to end with the best program so far.

    Returns a kernel: call it with NumPy arrays or torch tensors. Constants are arguments like any other unless `bind_constants` binds them. For a target
    other than this machine it returns a `Program`, which has the same attributes (`source`, `schedule`, `cost`, `unit`, `stats`, `save`) but cannot be called.
    Raises BudgetError, ArgumentError and TargetError for invalid arguments, and DeclarationError and ScheduleError for invalid declarations and schedules.
    """
    check_names("auto_schedule", options, ScheduleKeywords, "target")
    return _scheduled(func, args, target, options)


def _scheduled(func: Workload | SearchTask, args: Sequence[object], target: str | Target | None, options: ScheduleKeywords) -> Kernel | Program:
    if func is None:
        raise DeclarationError("asked to schedule None; give a function that returns tensors, the name of an operator, tensors, or a SearchTask")
    asked = RunOptions.of(options, options.get("model"))  # reports errors before sketches are derived
    asked.check_place(written=asked.measures)
    task = _task_of(func, args, target, options)
    check_machine(task.target, measures=asked.measures)
    asked.check_devices([task.target])
    toolchain = check_tools(task.target)
    with asked.reporter(task.target) as reporter:
        state = _operator_state(task, asked, reporter)
        reporter.now(f"building {task.name}")
        program = chosen(state, asked.search.model, asked.search.seed)
        say_refused([state], reporter.alarm)
        say_guesses([state], reporter.say, hint=not asked.given)
        return results([task], [program], toolchain, reporter.alarm, state.counters)[0]


def _operator_state(task: SearchTask, asked: RunOptions, reporter: Reporter) -> TaskState:
    """The state of a task. It is tuned first if the options ask for measurements."""
    if not asked.measures:
        reporter.now(f"deriving the programs of {task.name}")
        state = recorded_state(task, asked.records)
        say_unused([state], asked.records, reporter.say, reporter.alarm)
        return state
    (state,) = tuned([task], None, asked, reporter)
    if state.best is None and not state.trials and not state.refused:
        reporter.say("there was no time to measure a program; the model picks one")
    return state


def _task_of(func: Workload | SearchTask, args: Sequence[object], target: str | Target | None, options: ScheduleKeywords) -> SearchTask:
    """The task to schedule. Raises ArgumentError if `func` is a SearchTask and anything else is given as well."""
    rules, algorithms, templates, pins = options.get("rules"), options.get("algorithms"), options.get("templates", ()), options.get("pins", ())
    if not isinstance(func, SearchTask):
        target = "cpu" if target is None else target
        return SearchTask(func, args, target, rules=rules, algorithms=algorithms, templates=templates, pins=pins)
    check_arguments(args=args, rules=rules, algorithms=algorithms, templates=templates, pins=pins)
    beside = {"args": args, "rules": rules, "algorithms": algorithms, "templates": templates, "pins": pins}
    given = [name for name, value in beside.items() if value is not None and len(list(value)) > 0]
    if given or target is not None and parse_target(target) != func.target:
        raise ArgumentError(f"asked to schedule {func} with {', '.join(given) or f'target={target}'}; a SearchTask has its own: give them to SearchTask(...)")
    return func


@needs_torch
@known_names(hint=option_or_similar)
def extract_tasks(
    model: object, example_inputs: ExampleInputs = (), target: str | Target | None = None, *, report: Report | None = None,
    records: Sequence[str | Path] | str | Path = (),
) -> ExtractedTasks:  # fmt: skip
    """The tuning tasks of a PyTorch module, for `tune_tasks`, and how often the network runs each. Groups without a reduction are left out.

    records: files of `compile`, which may compute a part of the network for a few rows of the batch at a time: the tasks are those that it tuned.
    Raises ModelError if the module cannot be exported.
    """
    from ansor.graph.tasks import extract
    from ansor.networks.row_choice import as_recorded

    check_arguments(example_inputs=example_inputs)
    target = parse_target("cpu" if target is None else target)
    extracted = extract(model, example_inputs, report)
    extracted = as_recorded(extracted, target, [records] if isinstance(records, (str, Path)) else records)
    states = recorded_states([(SearchTask(tensors=t.tensors, target=target, name=t.name), t.weight) for t in extracted.tasks], None)
    tunable = [state for state in states.values() if is_tunable(state.task)]
    return ExtractedTasks([state.task for state in tunable], [int(state.weight) for state in tunable])


@takes_network
def compile(
    model: object, example_inputs: ExampleInputs = (), target: str | Target | None = None, **options: Unpack[CompileKeywords]
) -> CompiledNetwork:
    """Tune and compile a PyTorch module into one callable with the module's arguments and results.

    Args:
        model, example_inputs: the module, and its inputs as a tuple, or as a dict for keyword arguments. The network takes inputs of their shapes and dtypes.
        `model` may also be the path of a float ONNX file. The file contains shapes; inputs are needed only for dimensions that it leaves open.
        trials, minutes: the budget of all tasks together, one of them or both. As in `auto_schedule`, without a budget, or with 0 trials, no program is
        measured: the best recorded ones are used, or those that the model picks. Reading the module and building the kernels are not part of the budget.
        library: use PyTorch's own kernels, on as many threads as PyTorch is set to, where they are faster than ours on this machine. The comparison takes up
        to 0.1 s per group, and its result is kept. False: use our kernels everywhere.
        on_tasks: gets the states of all tasks once their programs are chosen.
        early_stop: end a task after this many trials without a better program; the others continue.
        cost_model: what `auto_schedule` calls `model`.
        target, min_gain, records, devices, seed, timing, progress, report, on_progress: as in `auto_schedule`.

    Raises ModelError for a module that cannot be read, and the errors of `auto_schedule`.
    """
    return compile_sharing(model, example_inputs, target, None, **options)


def compile_sharing(
    model: object, example_inputs: ExampleInputs, target: str | Target | None, shared: SharedConstants | None, **options: Unpack[CompileKeywords]
) -> CompiledNetwork:
    """`compile`, with constants of other networks instead of equal ones."""
    from ansor.graph.tasks import extract
    from ansor.networks.compiling import compiled

    check_names("compile", options, CompileKeywords, "target")
    check_arguments(example_inputs=example_inputs)
    asked = RunOptions.of(options, options.get("cost_model"))  # reports errors before the module is read
    on_tasks = options.get("on_tasks", quiet)
    check_arguments(on_tasks=on_tasks)
    target = parse_target("cpu" if target is None else target)
    check_loads_here(target)
    check_machine(target, measures=asked.measures)
    asked.check_devices([target])
    asked.check_place(written=asked.measures)
    build_early()
    with asked.reporter(target) as reporter:
        reporter.now("reading the model")
        extracted = replace(extract(model, example_inputs, borrowed=not asked.measures and on_tasks is quiet), shared=shared)
        return compiled(extracted, target, asked, reporter, library=options.get("library", True), on_tasks=on_tasks)


class ExportKeywords(ChoosingKeywords, total=False):
    """The keywords of `export`."""

    isas: Sequence[str]
    threads: int
    embed: bool


@takes_network
def export(model: object, example_inputs: ExampleInputs, folder: str | Path, **options: Unpack[ExportKeywords]) -> Path:
    """Write a PyTorch module as self-contained C for several instruction sets. A call runs the best one that the processor supports. Nothing is measured.

    Args:
        model, example_inputs: as in `compile`; the self-test runs on these inputs.
        folder: where to write it.
        isas: some of x86-64-v2, x86-64-v3, x86-64-v4, armv8-a, armv8.2-a+dotprod; by default x86-64-v3 and x86-64-v4. Plain C99, which runs everywhere, is
        always added.
        threads: how many run a kernel, if the caller provides them; 1 by default.
        embed: store constants as a C array instead of a file.
        records: the file of an earlier run for `cpu -mcpu=ISA -threads=N`. Its best programs are used; the model picks the others.
        cost_model, seed, progress, report: as in `compile`.

    Raises ModelError for a module that cannot be read, or that has parts which run in PyTorch, ArgumentError for an unknown instruction set, and MeasureError
    if the folder cannot be written to.
    """
    from ansor.graph.tasks import extract
    from ansor.networks.exporting import export_for
    from ansor.networks.instruction_sets import DEFAULT, instruction_sets

    check_names("export", options, ExportKeywords)
    isas, threads, embed = instruction_sets(options.get("isas", DEFAULT)), options.get("threads", 1), options.get("embed", False)
    check_arguments(threads=threads, embed=embed)
    seed, records, progress, report = options.get("seed", 0), options.get("records"), options.get("progress"), options.get("report", quiet)
    asked = RunOptions.of({"seed": seed, "records": records, "progress": progress, "report": report}, options.get("cost_model"))
    asked.check_place(written=False)
    target = parse_target("cpu")
    check_machine(target, measures=False)
    with asked.reporter(target) as reporter:
        reporter.now("reading the model")
        export_for(extract(model, example_inputs), isas, threads, asked, reporter).write(Path(folder), embed=embed)
    return Path(folder)


class Int8Keywords(NetworkKeywords, total=False):
    """The keywords of `compile_int8`."""

    name: str
    ram_bytes: int | None
    flash_bytes: int | None
    arena_bytes: int


@takes_network
def compile_int8(
    model: object, calibration: Sequence[object] = (), target: str | Target | None = None, **options: Unpack[Int8Keywords]
) -> IntegerProgram:
    """Compile an int8 network to C with one arena, for this machine or a board; see docs/int8_networks.md.

    Args:
        model: the path of an ONNX file in QDQ format; or a graph that PyTorch's PT2E has quantised (what `convert_pt2e` returns, or its export);
            or another PyTorch module, which is quantised here; or an `ansor.integer` network.
        calibration: representative inputs of the PyTorch module, each a tensor or a tuple of tensors; the first one gives the shapes.
        ram_bytes, flash_bytes: the board's memory sizes; by default those in its file. A network that needs more is rejected before anything is built.
        arena_bytes: RAM that the arena may take; more lets kernels use faster algorithms. By default the arena is as small as the tensors allow.
        name: in C, by default that of the file or class. trials, minutes: the budget of all kernels; without one nothing is measured. Others: as in `compile`.

    Raises ModelError for a model that cannot be read or does not fit, and the errors of `auto_schedule`.
    """
    from ansor.integer.compiling import compiled as integer_compiled
    from ansor.integer.firmware import limits_of
    from ansor.integer.program import IntegerProgram
    from ansor.integer.reading import network_of

    check_names("compile_int8", options, Int8Keywords, "target")
    check_arguments(calibration=calibration)
    asked = RunOptions.of(options, options.get("cost_model"))  # reports errors before the model is read
    target = parse_target("cpu -threads=1" if target is None else target)
    if target.kind == "vta":
        raise TargetError(f"asked to compile a network for {target} alone; a core runs only its middle, a host the rest: use ansor.offload.build (docs/vta.md)")
    check_machine(target, measures=asked.measures)
    asked.check_devices([target])
    asked.check_place(written=asked.measures)
    check_tools(target)
    limits = limits_of(target, options.get("ram_bytes"), options.get("flash_bytes"), options.get("arena_bytes", 0))
    with asked.reporter(target) as reporter:
        reporter.now("reading the model")
        network = network_of(model, calibration, options.get("name", ""))
        for left in network.left_out:
            reporter.say(f"{left} after the output is left to the caller")
        limits.check_before(network, target.alignment)
        code = integer_compiled(network, target, asked, reporter, limits)
    code.check_fits(limits)
    return IntegerProgram(code)


# Names familiar from TVM's auto-scheduler -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordToFile:
    """Append every trial to a file."""

    filename: str


@dataclass(frozen=True)
class TuningOptions:
    """num_measure_trials: programs to measure; minutes: tuning time, alone or with trials; early_stopping: stop after this many trials without a better
    program; measure_callbacks: at most one `RecordToFile`."""

    num_measure_trials: int = 0
    early_stopping: int | None = None
    measure_callbacks: Sequence[RecordToFile] = field(default_factory=list)
    seed: int = 0
    verbose: int = 1
    minutes: float | None = None

    def tuned(self, task: SearchTask) -> TaskState:
        """Tune a task with these options; `task.tune(options)` calls this."""
        return tune(task, self)


def tune(task: SearchTask, options: TuningOptions) -> TaskState:
    """Tune one task; the result is in the record file and in the returned state. With 0 trials and no minutes, only recorded programs are used."""
    if not hasattr(options, "num_measure_trials"):
        raise ArgumentError(f"asked to tune with {options!r:.80}, which is a {type(options).__name__}; give ansor.TuningOptions(num_measure_trials=...)")
    files = [callback.filename for callback in options.measure_callbacks]
    if len(files) > 1:
        raise RecordError(f"asked to record to {len(files)} files ({', '.join(files)}); give one RecordToFile")
    say: Report = print if options.verbose else quiet
    records = files[0] if files else None
    if options.num_measure_trials == 0 and options.minutes is None:
        if records is not None:
            check_records(Path(records), written=False)
        state = recorded_state(task, records)
        say_unused([state], records, say, say if options.verbose else warn)
        return state
    return tune_tasks(
        [task], trials=options.num_measure_trials or None, minutes=options.minutes, records=records, seed=options.seed,
        early_stop=options.early_stopping, progress=None if options.verbose else False, report=say,
    )[0]  # fmt: skip


def apply_best(task: SearchTask, records: str | Path) -> tuple[Sketch, list[Tensor]]:
    """The best recorded schedule, with all parameters filled in, and its tensors. Raises RecordError if there is none."""
    return task.apply_best(records)


class SketchPolicy:
    """How a task is searched. `generate_sketches` returns the sketches that the rules derive; `rules` (names or values) replace the task's own."""

    def __init__(self, task: SearchTask, rules: Sequence[str | SketchRule] | None = None) -> None:
        self.task = task
        self.rules = task.rules if rules is None else tuple(rules)

    def generate_sketches(self, print_for_debug: bool = False) -> list[Sketch]:
        """All sketches, in the order in which the rules derive them."""
        found = derive_sketches(self.task.dag, self.rules, self.task.target)
        for number, sketch in enumerate(found if print_for_debug else []):
            print(f"sketch {number}\n{sketch}\n")
        return found
