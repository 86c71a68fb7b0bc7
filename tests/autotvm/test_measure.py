"""Building and running configurations, and the results of those that fail."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ansor
from ansor import autotvm, te
from ansor.autotvm import MeasureErrorNo, MeasureInput, MeasureResult, local_measure
from ansor.compat.autotvm.local_measure import BuildResult
from ansor.compat.autotvm.measure import BatchTrouble, MeasureBatch, create_measure_batch, measure_option
from ansor.errors import ConfigError, MachineTrouble, MeasureError, TargetError
from ansor.manual.program import source_of
from ansor.measure.builder import Built
from ansor.measure.failure import Failure
from ansor.measure.runner import Run, Runner
from ansor.templates.template import Instance
from tests.autotvm import templates

pytestmark = pytest.mark.compiler

TARGET = "llvm -mcpu=native"


@autotvm.template("tests/gather")
def gather(n: int, m: int) -> Instance:
    """Rows by index."""
    a, rows = te.placeholder((n, 4), name="A"), te.placeholder((m,), name="rows", dtype="int32")
    c = te.compute((m, 4), lambda i, j: a[rows[i], j] + 1.0, name="C")
    autotvm.get_config().define_knob("unused", [1, 2])
    return ansor.create_schedule(c.op), [a, rows, c]


def quick() -> autotvm.LocalRunner:
    return autotvm.LocalRunner(number=1, repeat=1, cooldown_interval=0)


@pytest.fixture
def task() -> autotvm.Task:
    return autotvm.task.create("tests/matmul", (16, 32, 8), TARGET)


@pytest.fixture
def measure(task: autotvm.Task) -> Iterator[MeasureBatch]:
    with create_measure_batch(task, measure_option(runner=quick())) as batch:
        yield batch


def inputs(task: autotvm.Task, *indices: int) -> list[MeasureInput]:
    return [MeasureInput(task.target, task, task.config_space.get(index)) for index in indices]


def test_programs_are_built_run_and_verified(task: autotvm.Task, measure: MeasureBatch) -> None:
    results = measure(inputs(task, 3, 8))
    assert [result.error_no for result in results] == [0, 0] and all(0 < result.mean_cost < 1 and len(result.costs) == 1 for result in results)
    assert all(result.all_cost > result.mean_cost and result.timestamp > 1.6e9 and not result.error_msg for result in results)


def test_impossible_configurations_are_never_compiled(task: autotvm.Task, measure: MeasureBatch, monkeypatch: pytest.MonkeyPatch) -> None:
    impossible = next(index for index in range(len(task.config_space)) if task.config_space.get(index)["tile_x"].size[-1] > templates.LIMIT)
    builder = autotvm.LocalBuilder()
    builder.set_task(task)
    assert builder._builder is not None
    monkeypatch.setattr(builder._builder, "submit", lambda sources: pytest.fail("compiled"))
    (built,) = builder.build(inputs(task, impossible))
    assert built.error_no == MeasureErrorNo.INSTANTIATION_ERROR and "at most 16 columns" in built.error_msg and not built.filename
    builder.close()
    (good, bad) = measure(inputs(task, 3, impossible))
    assert (good.error_no, bad.error_no) == (0, 1) and bad.costs == (1e9,) and "at most 16 columns" in bad.error_msg


@pytest.mark.parametrize("old, new, timeout, expected", [
    ("= 0.0f", "= 1.0f", 10, MeasureErrorNo.WRONG_ANSWER),
    ("(void)workspace;", "no C", 10, MeasureErrorNo.COMPILE_HOST),
    ("(void)workspace;", "*(volatile int *)8 = 1;", 10, MeasureErrorNo.RUNTIME_DEVICE),
    ("(void)workspace;", "for (volatile int on = 1; on;) {}", 0.5, MeasureErrorNo.RUN_TIMEOUT),
])  # fmt: skip
def test_errors_have_a_number_and_a_text(
    old: str, new: str, timeout: float, expected: MeasureErrorNo, task: autotvm.Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_measure, "source_of", lambda *asked: replace(source := source_of(*asked), text=source.text.replace(old, new)))
    runner = autotvm.LocalRunner(timeout=timeout, number=1, repeat=1, cooldown_interval=0)
    with create_measure_batch(task, measure_option(runner=runner)) as measure:
        (result,) = measure(inputs(task, 0))
    assert result.error_no == expected and result.costs == (1e9,) and result.error_msg


def test_a_build_that_takes_too_long(task: autotvm.Task) -> None:
    with create_measure_batch(task, measure_option(autotvm.LocalBuilder(timeout=1e-3), quick())) as measure:
        (result,) = measure(inputs(task, 0))
    assert result.error_no == MeasureErrorNo.BUILD_TIMEOUT and result.costs == (1e9,)


def test_libraries_are_removed_after_running(task: autotvm.Task) -> None:
    builder, runner = autotvm.LocalBuilder(n_parallel=1), quick()
    builder.set_task(task)
    runner.set_task(task)
    built = builder.build(inputs(task, 3, 4))
    assert builder.n_parallel == 1 and [Path(one.filename).exists() for one in built] == [True, True]
    assert built[0].arg_info == (((16, 8), "float32"), ((8, 32), "float32"), ((16, 32), "float32"))
    runner.run(inputs(task, 3, 4), built)
    assert [Path(one.filename).exists() for one in built] == [False, False]
    runner.close()
    builder.close()


def test_reference_inputs_reach_the_program() -> None:
    """Generated indices are bounded, so that they stay inside the rows; with given inputs, an index that is too large is detected."""
    task = autotvm.task.create("tests/gather", (8, 6), TARGET)
    runner = quick()
    runner.ref_input = [np.ones((8, 4), np.float32), np.array([7, 7, 0, 1, 2, 3], np.int32), np.zeros((6, 4), np.float32)]
    with create_measure_batch(task, measure_option(runner=runner)) as measure:
        assert measure(inputs(task, 0))[0].error_no == 0
        assert runner._session is not None
        ((known, _),) = runner._session._tasks.values()
        assert np.load(dict(known.files)["rows"]).tolist() == [7, 7, 0, 1, 2, 3] and "C" not in dict(known.files)
    runner.ref_input = [np.ones((8, 4), np.float32)]
    with create_measure_batch(task, measure_option(runner=runner)) as measure, pytest.raises(ConfigError, match="ref_input of .* programs take"):
        measure(inputs(task, 0))


def test_an_executor_runs_the_programs(task: autotvm.Task) -> None:
    """Its threads run the programs, with the inputs at that time, and its results are returned."""
    given: list[object] = []

    class Counting(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., MeasureResult], /, *args: object, **kwargs: object) -> Future[MeasureResult]:  # type: ignore[override]
            given.append(kwargs["ref_input"])
            return super().submit(fn, *args, **kwargs)

    runner, measured = quick(), inputs(task, 3, 4)
    arrays = [np.ones(shape, np.float32) for shape in ((16, 8), (8, 32), (16, 32))]
    with create_measure_batch(task, measure_option(runner=runner)) as measure, Counting(2) as runner.executor:
        assert [result.error_no for result in measure(measured)] == [0, 0] and given == [None, None]
        runner.ref_input = arrays
        assert [result.error_no for result in measure(measured)] == [0, 0] and given[2:] == [arrays, arrays]


def test_the_extremes_of_more_than_two_costs_are_dropped(task: autotvm.Task) -> None:
    counts = []
    for repeat in (2, 3, 5):
        with create_measure_batch(task, measure_option(runner=autotvm.LocalRunner(number=1, repeat=repeat, cooldown_interval=0))) as measure:
            counts.append(len(measure(inputs(task, 8))[0].costs))
    assert counts == [2, 1, 3]


def test_machine_trouble_is_raised(task: autotvm.Task, measure: MeasureBatch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Runner, "run", lambda *args, **options: Run((), Failure("machine", "no space; make room"), False, 0.1))
    with pytest.raises(MachineTrouble, match="no space; make room"):
        measure(inputs(task, 8))


def test_trouble_within_a_batch_loses_no_finished_result(task: autotvm.Task, monkeypatch: pytest.MonkeyPatch) -> None:
    run, runs = Runner.run, list[str]()

    def troubled(runner: Runner, *args: object, **options: object) -> Run:
        runs.append("one")
        return Run((), Failure("machine", "no space; make room"), False, 0.1) if len(runs) == 2 else run(runner, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Runner, "run", troubled)
    logged: list[tuple[int, MeasureResult]] = []
    tuner = autotvm.GridSearchTuner(task)
    with pytest.raises(MachineTrouble, match="no space; make room"):
        tuner.tune(9, measure_option(autotvm.LocalBuilder(n_parallel=3), quick()), callbacks=[
            lambda _, inputs, results: logged.extend((inp.config.index, result) for inp, result in zip(inputs, results, strict=True))
        ])  # fmt: skip
    assert [index for index, _ in logged] == [0, 2] and all(result.error_no == 0 for _, result in logged) and len(runs) == 3
    assert tuner.best_config is not None and tuner.best_config.index in (0, 2)


def test_trouble_while_building_only_loses_the_affected_programs(task: autotvm.Task, measure: MeasureBatch, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = measure._option.builder
    assert isinstance(builder, autotvm.LocalBuilder)
    built, count = builder._built, list[int]()

    def troubled(result: BuildResult, made: Built) -> BuildResult:
        count.append(1)
        return built(result, replace(made, failure=Failure("machine", "no memory; free some")) if len(count) == 1 else made)

    monkeypatch.setattr(builder, "_built", troubled)
    with pytest.raises(BatchTrouble, match="no memory; free some") as raised:
        measure(inputs(task, 3, 8))
    ((inp, result),) = raised.value.measured
    assert inp.config.index == 8 and result.error_no == 0


def test_names_and_defaults() -> None:
    builder, runner = autotvm.LocalBuilder(), autotvm.LocalRunner()
    assert builder.timeout == 10 and builder.n_parallel >= 1
    timing = runner.timing
    assert (timing.timeout_seconds, timing.number, timing.repeat, timing.min_repeat_ms, timing.cooldown_seconds, timing.flush_bytes) == (10, 4, 3, 0, 0.1, 0)
    assert autotvm.LocalRunner(enable_cpu_cache_flush=True).timing.flush_bytes > 0
    option = autotvm.measure_option(builder="local", runner="local")
    assert isinstance(option.builder, autotvm.LocalBuilder) and isinstance(option.runner, autotvm.LocalRunner)


def test_mistakes(task: autotvm.Task) -> None:
    with pytest.raises(ConfigError, match="give number and repeat of at least 1"):
        autotvm.RPCRunner("pi", "127.0.0.1", 9190, number=0)
    with pytest.raises(TargetError, match="build programs with 'ndk'; give 'default'"):
        autotvm.LocalBuilder(build_func="ndk")
    with pytest.raises(TargetError, match="omit module_loader"):
        autotvm.LocalRunner(module_loader=print)
    with pytest.raises(ConfigError, match="measure by 'rpc'; give 'local'"):
        autotvm.measure_option(runner="rpc")

    class Lazy(autotvm.measure.Runner):
        def run(self, measure_inputs: object, build_results: object) -> list[MeasureResult]:
            return []

    with create_measure_batch(task, measure_option(runner=Lazy())) as measure, pytest.raises(MeasureError, match="Lazy to measure 1 programs; found 0 results"):
        measure(inputs(task, 0))
    assert BuildResult().error_no == 0


@pytest.mark.parametrize(("number", "repeat", "timeout"), [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_runners_that_measure_nothing_are_refused(number: int, repeat: int, timeout: int) -> None:
    with pytest.raises(ConfigError, match="at least 1, and a timeout above 0"):
        autotvm.LocalRunner(timeout, number, repeat)
