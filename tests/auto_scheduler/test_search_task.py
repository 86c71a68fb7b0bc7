"""Tasks: their arguments, what a log keeps of them, and completing a task from a log."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from ansor.auto_scheduler import (
    ComputeDAG,
    HardwareParams,
    LayoutRewriteOption,
    MeasureInput,
    MeasureResult,
    RecordedState,
    RecordedTask,
    SearchTask,
    State,
    dump_record_to_string,
    get_task_input_buffer,
    load_record_from_string,
    load_records,
    make_workload_key,
    recover_measure_input,
    register_task_input_buffer,
    register_task_input_check_func,
    register_workload,
    save_records,
)
from ansor.compat.auto_scheduler import task_inputs, workload_registry
from ansor.compat.common.local_target import local_target
from ansor.errors import AnsorError, DeclarationError, RecordError, ScheduleError, TargetError
from ansor.targets.base import parse_target
from ansor.te import workloads
from ansor.te.tensor import Tensor
from tests.auto_scheduler.declared import check_interpreted


@register_workload
def task_matmul(n: int, m: int, k: int) -> list[Tensor]:
    return workloads.matmul(n, m, k)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(workload_registry, "_declarations", {})
    monkeypatch.setattr(task_inputs, "TASK_INPUT_BUFFER_TABLE", {})
    monkeypatch.setattr(task_inputs, "_checks", {})
    monkeypatch.chdir(tmp_path)


def test_arguments_of_a_task() -> None:
    task = SearchTask(func=task_matmul, args=(16, 16, 16), target="llvm", desc="a product")
    assert task.workload_key == '["task_matmul", 16, 16, 16]' and task.compute_dag.flop_ct == 2 * 16**3 and task.target_kind == "llvm"
    assert task.layout_rewrite_option == LayoutRewriteOption.INSERT_TRANSFORM_STAGE and "a product" in repr(task)
    assert SearchTask(func="task_matmul", args=(16, 16, 16), target="cuda").layout_rewrite_option == LayoutRewriteOption.NO_REWRITE
    assert LayoutRewriteOption.get_target_default("llvm", in_relay_integration=True) == LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
    same = SearchTask(workload_key=task.workload_key, target="llvm")
    assert same.recorded == task.recorded and str(same.compute_dag) == str(task.compute_dag)
    hashed = SearchTask(compute_dag=ComputeDAG(task_matmul(8, 8, 8)), target="llvm")
    assert SearchTask(workload_key=hashed.workload_key, target="llvm").compute_dag.flop_ct == 2 * 8**3
    with pytest.raises(TargetError, match="without a target"):
        SearchTask(func=task_matmul, args=(16, 16, 16))
    with pytest.raises(TargetError, match="without a workload"):
        SearchTask(target="llvm")
    with pytest.raises(DeclarationError, match="'unheard_of', which is not registered"):
        SearchTask(workload_key='["unheard_of", 1]', target="llvm")


def test_the_machine_of_a_task() -> None:
    task = SearchTask(func=task_matmul, args=(16, 16, 16), target="llvm", hardware_params=HardwareParams(num_cores=3, target="llvm"))
    assert task.hardware_params == HardwareParams(3, 64, 64, 0, 0, 0, 0, 0) and task.local_target.threads == 3 and task.local.target is task.local_target
    ours = parse_target("cpu -mcpu=haswell -threads=5")
    assert SearchTask(func=task_matmul, args=(16, 16, 16), target=ours).hardware_params == HardwareParams(5, 32, 64)
    assert SearchTask(func=task_matmul, args=(16, 16, 16), target="cpu -threads=5").hardware_params.num_cores == 5
    gpu = SearchTask(func=task_matmul, args=(16, 16, 16), target="cuda")
    assert gpu.hardware_params.num_cores == -1
    with pytest.raises(TargetError, match="only CPUs are supported"):
        _ = gpu.local_target


@pytest.mark.parametrize("text, mcpu, threads", [
    ("llvm -keys=cpu -mcpu=core-avx2 -threads=2", "haswell", 2), ("llvm -mcpu skylake-avx512 -mattr=+avx512f,+avx2 -threads 1", "skylake-avx512", 1),
    ('{"kind": "llvm", "keys": ["cpu"], "mcpu": "znver3", "threads": 4}', "znver3", 4), ("llvm -keys=cpu -link-params=0 -threads=1", "native", 1),
    ("c -mtriple=x86_64-linux-gnu -threads=1", "native", 1),
])  # fmt: skip
def test_targets_as_tvm_writes_them(text: str, mcpu: str, threads: int) -> None:
    found = local_target(text)
    assert (found.mcpu, found.threads) == (mcpu, threads)


@pytest.mark.parametrize("text", ["cuda", "", "llvm -frobnicate=1", "llvm x", "llvm '", '{"kind": "llvm"', "llvm -mcpu=z80"])
def test_invalid_targets(text: str) -> None:
    with pytest.raises(TargetError) as error:
        local_target(text)
    assert str(error.value).startswith("asked for")


def test_pickled_tasks_include_their_declaration() -> None:
    task = SearchTask(compute_dag=ComputeDAG(task_matmul(8, 8, 8)), target="llvm", desc="x")
    _ = task.local
    data = pickle.dumps(task)
    workload_registry._declarations.clear()
    again: SearchTask = pickle.loads(data)
    assert again.recorded == task.recorded and again.desc == "x" and workload_registry.is_registered(task.workload_key)


def test_search_task_record() -> None:
    """What a log keeps of a task, with and without inputs, also in older versions."""
    task = SearchTask(func=task_matmul, args=(16, 16, 16), target="llvm")
    state = task.compute_dag.get_init_state()
    line = dump_record_to_string(MeasureInput(task, state), MeasureResult([0.1], 0, "", 0.2, 1))
    fields = json.loads(line)["i"][0]
    cores = task.hardware_params.num_cores
    assert fields == ['["task_matmul", 16, 16, 16]', "llvm -keys=cpu", [cores, 64, 64, 0, 0, 0, 0, 0], "", 1, []]
    read = load_record_from_string(line)[0]
    again = recover_measure_input(read).task
    assert isinstance(again, SearchTask) and again.recorded == task.recorded and again.compute_dag.ops[0].name == "A"
    task = SearchTask(func=task_matmul, args=(16, 16, 16), target="llvm", task_inputs={"test": np.zeros((10, 10), "float32")})
    line = dump_record_to_string(MeasureInput(task, state), MeasureResult([0.1], 0, "", 0.2, 1))
    assert json.loads(line)["i"][0][-1] == ["test"] and recover_measure_input(load_record_from_string(line)[0]).task.task_input_names == ["test"]
    old = '{"i": [["[\\"task_matmul\\", 16, 16, 16]", "llvm -keys=cpu", [8, 64, 64, 0, 0, 0, 0, 0], "", 2], [[], []]], "r": [[1], 0, 0, 0], "v": "v0.5"}'
    found = recover_measure_input(load_record_from_string(old)[0]).task
    assert isinstance(found, SearchTask) and found.layout_rewrite_option == 2 and found.hardware_params.num_cores == 8 and found.task_input_names == []
    older = '{"i": [["[\\"task_matmul\\", 16, 16, 16]", "llvm"], [[], [["PR", 2, 0, "auto_unroll_max_step$16"]]]], "r": [[1], 0, 0, 0], "v": "v0.2"}'
    whole = recover_measure_input(load_record_from_string(older)[0], rebuild_state=True)
    assert isinstance(whole.state, State) and whole.state["C"].attrs.auto_unroll_max_step == 16


def test_recover_measure_input(tmp_path: Path) -> None:
    task = SearchTask(func=task_matmul, args=(16, 16, 16), target="llvm")
    state = task.compute_dag.get_init_state()
    i, j, k = state["C"].iters
    state.split("C", i, [4])
    state.parallel("C", state["C"].iters[0])
    result = MeasureResult([0.1], 0, "", 0.2, 1)
    save_records(tmp_path / "log.json", [MeasureInput(task, state)], [result])
    ((raw, found),) = load_records(tmp_path / "log.json")
    assert found == result and isinstance(raw.task, RecordedTask) and raw.state.stages == ()
    part, whole = recover_measure_input(raw), recover_measure_input(raw, rebuild_state=True)
    assert part.state is raw.state and isinstance(whole.state, State) and whole.state == state and isinstance(whole.task, SearchTask)
    check_interpreted(whole.task.compute_dag, whole.task.compute_dag.apply_steps_from_state(whole.state)[0])
    assert dump_record_to_string(whole, found) == dump_record_to_string(raw, found) == (tmp_path / "log.json").read_text()
    steps = raw.state.transform_steps
    wrong = MeasureInput(raw.task, RecordedState((*steps, steps[-1])))
    with pytest.raises(ScheduleError, match="annotate it once"):
        recover_measure_input(wrong, rebuild_state=True)


def test_values_of_inputs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ones, twos = np.ones((4, 2), "float32"), np.full((4, 2), 2, "float32")
    key = make_workload_key(task_matmul, (4, 4, 2))
    assert register_task_input_buffer(key, "A", ones, save_to_file=True) is get_task_input_buffer(key, "A")
    assert [path.name for path in tmp_path.glob("*.npy")] == ["A.4_2_float32.npy"]
    assert register_task_input_buffer(key, "A", twos) is get_task_input_buffer(key, "A") and "overwrite=True replaces" in caplog.text
    assert get_task_input_buffer(key, "A")[0, 0] == 1 and register_task_input_buffer(key, "A", twos, overwrite=True)[0, 0] == 2
    task_inputs.TASK_INPUT_BUFFER_TABLE.clear()
    assert np.array_equal(get_task_input_buffer(key, "A"), ones)  # from the file
    with pytest.raises(RecordError, match="which has none"):
        get_task_input_buffer(key, "B")
    with pytest.raises(RecordError):
        get_task_input_buffer(key, "../A")


def test_search_task_add_task_input() -> None:
    values = {"A": np.ones((4, 2), "float32"), "B": np.ones((2, 4), "float32")}
    task = SearchTask(func=task_matmul, args=(4, 4, 2), target="cpu -threads=1", task_inputs=values)
    assert task.task_input_names == ["A", "B"] and set(task.local.inputs) == {"A", "B"} and task.local.measure_task.files[0][0] == "A"
    again = SearchTask(func=task_matmul, args=(4, 4, 2), target="cpu -threads=1", task_inputs=["B"])
    assert again.task_input_names == ["B"] and np.array_equal(again.local.inputs["B"], values["B"])
    for wrong in ({"Z": values["A"]}, {"A": np.ones((3, 2), "float32")}, ["C"]):
        task = SearchTask(func=task_matmul, args=(4, 4, 2), target="cpu -threads=1", task_inputs=wrong, task_inputs_overwrite=True)
        with pytest.raises(AnsorError):
            _ = task.local


def test_recover_measure_input_with_task_input() -> None:
    """A log holds the names, and the registry the values."""
    values = {"A": np.ones((4, 2), "float32"), "B": np.ones((2, 4), "float32")}
    task = SearchTask(func=task_matmul, args=(4, 4, 2), target="cpu -threads=1", task_inputs=values)
    line = dump_record_to_string(MeasureInput(task, task.compute_dag.init_state), MeasureResult([0.1], 0, "", 0.2, 1))
    raw, _ = load_record_from_string(line)
    assert raw.task.task_input_names == ("A", "B")
    whole = recover_measure_input(raw, rebuild_state=True)
    assert isinstance(whole.task, SearchTask) and whole.task.task_input_names == ["A", "B"] and set(whole.task.local.inputs) == {"A", "B"}
    assert whole.task.compute_dag.workload_key() == task.compute_dag.workload_key() and dump_record_to_string(whole, _) == line


def test_input_names_from_a_function() -> None:
    @register_task_input_check_func
    def name_it(args: list[Tensor]) -> dict[Tensor, str]:
        return {args[0]: "indices"}

    task = SearchTask(func=task_matmul, args=(4, 4, 2), target="cpu -threads=1", task_inputs={"indices": np.ones((4, 2), "float32")})
    assert set(task.local.inputs) == {"A"}
    with pytest.raises(RecordError, match="exists already"):
        register_task_input_check_func(name_it)
