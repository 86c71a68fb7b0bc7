"""Building and running single programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ansor import te
from ansor.auto_scheduler import (
    ComputeDAG,
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    ProgramMeasurer,
    SearchTask,
    register_workload_tensors,
)
from ansor.compat.auto_scheduler import task_inputs
from ansor.compat.auto_scheduler.measuring import failed, measured
from ansor.compat.common.outcome import ERRORS
from ansor.errors import MachineTrouble, TargetError
from ansor.measure.failure import KINDS, Failure
from ansor.measure.runner import Run, Runner
from ansor.te import workloads
from ansor.te.tensor import Tensor

QUICK = {"timeout": 60, "number": 1, "repeat": 2, "min_repeat_ms": 0}


def a_task(threads: int = 1) -> SearchTask:
    return SearchTask(compute_dag=ComputeDAG(workloads.matmul(16, 16, 16)), target=f"llvm -threads={threads}")


@pytest.mark.compiler
@pytest.mark.parametrize("flush", [False, True])
def test_measure_local_builder_runner(flush: bool) -> None:
    task = a_task()
    state = task.compute_dag.get_init_state()
    state.vectorize("C", state.split("C", state["C"].iters[1], [8])[1])
    inp = MeasureInput(task, state)
    built = LocalBuilder(n_parallel=1).build([inp])
    assert [one.error_no for one in built] == [0] and built[0].filename
    runner = LocalRunner(60, 1, 2, 0, 0.0, flush)
    (result,) = runner.run([inp], built)
    assert result.error_no == 0 and len(result.costs) == 2 and min(result.costs) > 0 and result.mean_cost < 1 and runner.number == 1


@pytest.mark.compiler
def test_errors_are_results() -> None:
    task = a_task()
    state = task.compute_dag.get_init_state()
    state.bind("C", state["C"].iters[0], "blockIdx.x")
    inputs = [MeasureInput(task, state), MeasureInput(task, task.compute_dag.init_state)]
    seen = []

    class See:
        def callback(self, policy: object, inputs: object, results: object) -> None:
            seen.append((policy, inputs, results))

    measurer = ProgramMeasurer(LocalBuilder(n_parallel=1), LocalRunner(60, 1, 1, 0), [See()])
    first, second = measurer.measure(task, None, inputs)
    assert first.error_no == MeasureErrorNo.INSTANTIATION_ERROR and "which processors do not have" in first.error_msg and first.costs == (1e10,)
    assert second.error_no == 0 and measurer.ct == 2 and measurer.error_ct == 1 and measurer.best_state[task.workload_key] == task.compute_dag.init_state
    assert measurer.best_flops[task.workload_key] == pytest.approx(2 * 16**3 / second.mean_cost) and seen == [(None, inputs, [first, second])]


@pytest.mark.compiler
def test_special_inputs_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indices must stay within the indexed tensor, which cannot be proven."""
    monkeypatch.setattr(task_inputs, "TASK_INPUT_BUFFER_TABLE", {})

    def gather() -> list[Tensor]:
        table, index, scale = te.placeholder((64, 4), name="table"), te.placeholder((8,), "int32", name="index"), te.placeholder((1,), "int32", name="scale")
        rows = te.compute((8, 4), lambda i, j: table[index[i] * scale[0], j], name="rows")
        return [table, index, scale, rows]

    key = register_workload_tensors('["gather"]', gather())
    given = {"index": np.arange(8, dtype="int32"), "scale": np.array([9], dtype="int32")}
    task = SearchTask(workload_key=key, target="llvm -threads=1", task_inputs=given)
    inp = MeasureInput(task, task.compute_dag.init_state)
    (result,) = LocalRunner(60, 1, 1, 0).run([inp], LocalBuilder(n_parallel=1).build([inp]))
    assert result.error_no == 0, result.error_msg


def test_kinds_of_failures_have_numbers() -> None:
    assert set(ERRORS) == set(KINDS)
    found = measured([], Failure("wrong_answer", "it differs"), 0.5, 3.0)
    assert (found.error_no, found.error_msg, found.costs, found.all_cost, found.timestamp) == (5, "it differs", (1e10,), 0.5, 3.0)
    assert measured([], None, 0.0).error_no == MeasureErrorNo.RUNTIME_DEVICE and failed(MeasureErrorNo.BUILD_TIMEOUT, "x", 1.0).timestamp > 1e9


def test_custom_build_functions_are_refused() -> None:
    with pytest.raises(TargetError, match="give 'default'"):
        LocalBuilder(build_func="ndk")
    assert LocalRunner(enable_cpu_cache_flush=True).timing.flush_bytes and not LocalRunner().timing.flush_bytes


@pytest.mark.compiler
def test_machine_trouble_is_raised_and_loses_no_finished_result(monkeypatch: pytest.MonkeyPatch) -> None:
    task, told = a_task(), list[int]()
    runs = iter([Run((0.5,), None, False, 0.1), Run((), Failure("machine", "no memory; free some"), False, 0.1)])
    monkeypatch.setattr(Runner, "run", lambda *args, **options: next(runs))

    class See:
        def callback(self, policy: object, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
            told.append(len(results))

    measurer = ProgramMeasurer(LocalBuilder(n_parallel=1), LocalRunner(60, 1, 1, 0), [See()])
    with pytest.raises(MachineTrouble, match="no memory; free some"):
        measurer.measure(task, None, [MeasureInput(task, task.compute_dag.init_state)] * 2)
    assert told == [1] and measurer.ct == 1 and measurer.error_ct == 0
