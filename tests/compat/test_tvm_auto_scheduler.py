"""Tests of TVM 0.9's auto-scheduler through its API, rewritten: those without another counterpart here. `tvm_tests` lists all of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ansor.compat import tvm
from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.search_task import SearchTask
from ansor.compat.tvm import auto_scheduler, te
from ansor.cost_model.features import extract
from ansor.te import workloads
from ansor.te.tensor import Tensor
from tests.cost_model.test_features import number

QUICK = {"timeout": 60, "number": 1, "repeat": 1, "min_repeat_ms": 0}


@auto_scheduler.register_workload("compat product", override=True)
def product(n: int, m: int, k: int) -> list[Tensor]:
    return workloads.matmul(n, m, k)


@auto_scheduler.register_workload("compat sum", override=True)
def whole_sum(n: int) -> list[Tensor]:
    return workloads.zero_rank_reduce(n)


@auto_scheduler.register_workload("compat free layout", override=True)
def free_layout(n: int) -> list[Tensor]:
    a, b, r = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b"), te.reduce_axis((0, n), name="r")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c", attrs={"layout_free_placeholders": [b]})
    return [a, b, c]


def options(trials: int, log: Path) -> auto_scheduler.TuningOptions:
    runner = auto_scheduler.LocalRunner(**QUICK)  # type: ignore[arg-type]  # its numbers
    return auto_scheduler.TuningOptions(trials, num_measures_per_round=2, runner=runner, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(log)])


def searched(task: SearchTask, trials: int, log: Path) -> None:
    task.tune(options(trials, log), auto_scheduler.SketchPolicy(task, auto_scheduler.RandomModel(), seed=1, verbose=0))


def check_function(task: SearchTask, log: Path, option: auto_scheduler.LayoutRewriteOption | None = None) -> None:
    """The best program of a log computes the expected last argument, a product."""
    sch, args = task.apply_best(log, layout_rewrite_option=option)
    func = tvm.build(sch, args, task.target)
    arrays = [tvm.nd.array(np.random.rand(*one.shape).astype(one.dtype)) for one in args]
    func(*arrays)
    tvm.testing.assert_allclose(arrays[2], np.matmul(np.asarray(arrays[0], "float32"), np.asarray(arrays[1], "float32")), rtol=1e-3)


# logs -------------------------------------------------------------------------------------------------------------------------------------------------


def split_reorder_fuse_annotation(state: State) -> None:
    i, j, k = state["C"].iters
    io, ii = state.split("C", i, [16])
    jo, ji = state.split("C", j, [8])
    state.reorder("C", [io, jo, k, ji, ii])
    state.parallel("C", state.fuse("C", [io, jo]))
    state.unroll("C", k)
    state.vectorize("C", ii)


def compute_at_root_inline_caches(state: State) -> None:
    a, c = state.stage_ops[0], state.stage_ops[2]
    private = state.cache_write(c, "local")
    shared = state.cache_read(a, "local", [private])
    state.compute_at(private, c, state[c].iters[0])
    state.compute_at(shared, private, state[private].iters[0])
    state.compute_root(shared)
    state.compute_inline(shared)


def follow_split_follow_fused_split(state: State) -> None:
    c = state.stage_ops[2]
    private = state.cache_write(c, "local")
    first = len(state.transform_steps)
    state.split(private, state[private].iters[0], [4, 2, 8, 4], inner_to_outer=True)
    second = len(state.transform_steps)
    state.split(private, state[private].iters[5], [4, 4, 2, 4])
    state.follow_split(c, state[c].iters[0], first, 2)
    state.follow_fused_split(c, state[c].iters[3], [first, second], 1, True)


def pragma_storage_align_rfactor(state: State) -> None:
    state.pragma("C", state["C"].iters[0], "auto_unroll_max_step$16")
    state.storage_align("C", state["C"].iters[0], 8, 4)
    _, inner = state.split("C", state["C"].iters[2], [16])
    state.rfactor("C", inner, 2)


def record_round_trip(change: Callable[[State], None]) -> None:
    """The steps, the resulting state, and the text of a line survive a round trip."""
    dag = auto_scheduler.ComputeDAG(workloads.matmul(512, 512, 512))
    task = auto_scheduler.SearchTask(compute_dag=dag, workload_key="compat record", target=tvm.target.Target("llvm", host="llvm"), target_host="llvm")
    state = dag.get_init_state()
    change(state)
    inp, result = auto_scheduler.MeasureInput(task, state), auto_scheduler.MeasureResult([0.1], 0, "", 0.2, 1)
    line = auto_scheduler.dump_record_to_string(inp, result)
    read, found = auto_scheduler.load_record_from_string(line)
    assert read.task.recorded == task.recorded and read.state.transform_steps == state.transform_steps and dag.state_of(read.state) == state
    assert found == result and auto_scheduler.dump_record_to_string(read, found) == line


def test_record_split_reorder_fuse_annotation() -> None:
    record_round_trip(split_reorder_fuse_annotation)


def test_record_compute_at_root_inline_cache_read_write() -> None:
    record_round_trip(compute_at_root_inline_caches)


def test_record_follow_split_follow_fused_split() -> None:
    record_round_trip(follow_split_follow_fused_split)


def test_record_pragma_storage_align_rfactor() -> None:
    record_round_trip(pragma_storage_align_rfactor)


# measuring and searching ------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.compiler
def test_measure_local_builder_rpc_runner() -> None:
    task = auto_scheduler.SearchTask(func="compat product", args=(16, 16, 16), target="llvm -threads=1")
    inp = auto_scheduler.MeasureInput(task, task.compute_dag.get_init_state())
    context = auto_scheduler.LocalRPCMeasureContext(timeout=60, repeat=2)
    built = auto_scheduler.LocalBuilder(timeout=60).build([inp])
    (result,) = context.runner.run([inp], built)
    assert [one.error_no for one in built] == [0] and result.error_no == 0 and len(result.costs) == 2


def test_measure_target_host() -> None:
    task = auto_scheduler.SearchTask(func="compat product", args=(8, 8, 8), target="llvm", target_host="llvm -mtriple=aarch64-linux-gnu")
    inp = auto_scheduler.MeasureInput(task, task.compute_dag.init_state)
    raw, _ = auto_scheduler.load_record_from_string(auto_scheduler.dump_record_to_string(inp, auto_scheduler.MeasureResult([1.0], 0, "", 1.0, 1)))
    assert raw.task.target_host == "llvm -mtriple=aarch64-linux-gnu"
    assert auto_scheduler.search_task.recover_measure_input(raw).task.target_host == raw.task.target_host


@pytest.mark.compiler
def test_workload_registry_empty_policy(tmp_path: Path) -> None:
    auto_scheduler.register_workload("compat renamed", product, override=True)
    funcs: list[str | Callable[..., list[Tensor]]] = [product, "compat product", "compat renamed"]
    for k, func in enumerate(funcs):
        task = auto_scheduler.SearchTask(func=func, args=(8, 8, 8), target="llvm -threads=1")
        log = tmp_path / f"{k}.json"
        auto_scheduler.EmptyPolicy(task).search(options(1, log))
        ((inp, result),) = auto_scheduler.load_records(log)
        assert inp.state.transform_steps == () and result.error_no == 0
        check_function(task, log)


@pytest.mark.compiler
def test_sketch_search_policy_zero_rank(tmp_path: Path) -> None:
    task = auto_scheduler.SearchTask(func=whole_sum, args=(256,), target="llvm -threads=1")
    searched(task, 4, tmp_path / "log.json")
    sch, args = task.apply_best(tmp_path / "log.json")
    values, out = np.random.rand(*args[0].shape).astype("float32"), tvm.nd.empty(())
    tvm.build(sch, args, task.target)(tvm.nd.array(values), out)
    tvm.testing.assert_allclose(out, np.asarray(values.sum()), rtol=1e-4)


@pytest.mark.compiler
@pytest.mark.parametrize("option", [auto_scheduler.LayoutRewriteOption.INSERT_TRANSFORM_STAGE, auto_scheduler.LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED])
def test_correctness_layout_rewrite(option: auto_scheduler.LayoutRewriteOption, tmp_path: Path) -> None:
    task = auto_scheduler.SearchTask(func=free_layout, args=(32,), target="llvm -threads=1", layout_rewrite_option=option)
    searched(task, 2, tmp_path / "log.json")
    check_function(task, tmp_path / "log.json", option)


@pytest.mark.compiler
def test_spawned_processes(tmp_path: Path) -> None:
    script = Path(__file__).parent / "scripts" / "spawned.py"
    run = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    for log in "one.json", "all.json":
        files = [path for path in (tmp_path / log, tmp_path / f"{log}.ansor.jsonl") if path.exists()]
        lines = [line for path in files for line in path.read_text().splitlines() if not line.startswith('{"header"')]
        assert len(lines) == 2, log


# features ---------------------------------------------------------------------------------------------------------------------------------------------


def test_features_of_products_as_declared_and_scheduled() -> None:
    dag = auto_scheduler.ComputeDAG(workloads.matmul(128, 128, 128))
    tiled = dag.get_init_state()
    tiled.vectorize("C", tiled.split("C", tiled["C"].iters[1], [16])[1])
    for state in dag.init_state, tiled:
        (row,) = extract(dag.replay(state).sketch.lower_row([])).rows
        assert number(row, "float_mad") == pytest.approx(128**3, rel=1e-4)
        assert [number(row, f"B{k}.unique_bytes") for k in range(3)] == pytest.approx([128 * 128 * 4] * 3, rel=1e-4)
