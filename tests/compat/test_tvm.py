"""TVM's names: what they refer to, how they handle the arguments of TVM's scripts, and the messages for missing ones."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest

import ansor
from ansor import auto_scheduler, autotvm
from ansor.compat import tvm
from ansor.compat.tvm import te, topi
from ansor.compat.tvm.benchmark import timed
from ansor.errors import AnsorError, DeclarationError, ScheduleError, TargetError
from ansor.manual.schedule import Schedule
from ansor.te import nn
from ansor.te.tensor import Tensor

NAMES = (
    "register_workload", "SearchTask", "TuningOptions", "RecordToFile", "LocalBuilder", "LocalRunner", "LocalRPCMeasureContext", "RPCRunner", "SketchPolicy",
    "EmptyPolicy", "XGBModel", "RandomModel", "PythonBasedModel", "PreloadMeasuredStates", "PreloadCustomSketchRule", "TaskScheduler", "load_records",
    "load_best_record", "save_records", "ApplyHistoryBest", "ComputeDAG", "HardwareParams", "LayoutRewriteOption", "RecordReader", "distill_record_file",
    "MeasureInput", "MeasureResult", "make_workload_key", "auto_schedule", "create_task", "extract_tasks", "register_task_input_buffer",
    "get_task_input_buffer", "register_task_input_check_func", "measure_record", "search_policy", "cost_model", "task_scheduler",
)  # fmt: skip


def scaled(n: int = 8, m: int = 12) -> tuple[Tensor, Tensor, Tensor]:
    a, b = te.placeholder((n, m), name="a"), te.placeholder((m,), name="b")
    return a, b, te.compute((n, m), lambda i, j: a[i, j] * b[j], name="c")


@pytest.mark.parametrize("name", NAMES)
def test_names_of_the_auto_scheduler(name: str) -> None:
    assert getattr(tvm.auto_scheduler, name) is getattr(auto_scheduler, name, None) or isinstance(getattr(tvm.auto_scheduler, name), ModuleType)


def test_names_of_the_others_are_ours() -> None:
    for ours, theirs in ((autotvm, tvm.autotvm), (ansor.te, tvm.te), (nn, tvm.topi)):
        missing = [name for name, value in vars(ours).items() if name[0] != "_" and not isinstance(value, ModuleType) and not hasattr(theirs, name)]
        assert not missing
    assert tvm.autotvm.tuner.XGBTuner is autotvm.XGBTuner and tvm.te.sum is ansor.te.sum and tvm.TVMError is AnsorError


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("relay", "ansor.compile"), ("tir.PrimFunc", "te.if_then_else"),
        ("micro", "on this machine"), ("rpc", "on this machine"), ("contrib.tedd", "tvm.lower"),
        ("contrib.bogus", "pickle_memoize"), ("gpu", "tvm.cpu()"), ("thread_axis", "s[C].parallel"),
        ("te.extern", "te.compute"),
        ("auto_scheduler.relay_integration", "ansor.compile"), ("autotvm.tophub", "apply_history_best"), ("bogus", "docs/tvm.md"),
        ("target.hexagon", "'llvm'"), ("topi.sparse_dense", "te.compute"), ("topi.nn.bogus", "te.compute"), ("transform.Simplify", "no passes"),
        ("runtime.vm", "ansor.compile"),
    ],
)  # fmt: skip
def test_missing_names_say_what_to_use(path: str, words: str) -> None:
    parent: object = tvm
    *parts, last = path.split(".")
    for part in parts:
        parent = getattr(parent, part)
    assert not hasattr(parent, last)
    with pytest.raises(AttributeError, match="which is not available; ") as raised:
        getattr(parent, last)
    assert words in str(raised.value) and f"asked for tvm.{path}, " in str(raised.value)


def test_nothing_heavy_is_loaded() -> None:
    program = "import sys\nfrom ansor.compat import tvm\nprint({'torch', 'lightgbm'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "set()\n"


@pytest.mark.compiler
def test_functions_write_into_given_arrays() -> None:
    a, b, c = scaled()
    s = te.create_schedule([c.op])
    s[c].vectorize(s[c].op.axis[1])
    for args in ([a, b, c], [c, b, a]):
        func = tvm.build(s, args, tvm.target.Target("llvm"), name="scaled")
        given = {a: np.random.rand(8, 12).astype("float32"), b: np.random.rand(12).astype("float32"), c: np.zeros((8, 12), "float32")}
        arrays = [tvm.nd.array(given[one], tvm.cpu()) for one in args]
        func(*arrays)
        tvm.testing.assert_allclose(arrays[args.index(c)], given[a] * given[b], rtol=1e-6)
        func[func.entry_name](*(given[one] for one in args))
        tvm.testing.assert_allclose(given[c], given[a] * given[b], rtol=1e-6)
    with pytest.raises(TypeError, match=r"scaled takes 3 arguments, including outputs \(c, b, a\), but found 2"):
        func(*arrays[:2])
    with pytest.raises(ValueError, match="must have shape"):
        func(tvm.nd.empty((8, 13)), *arrays[1:])
    with pytest.raises(TypeError, match="must have dtype float32, found float64"):
        func(tvm.nd.empty((8, 12), "float64"), *arrays[1:])
    with pytest.raises(AttributeError, match="holds 'scaled'"):
        func.time_evaluator("other", tvm.cpu())
    found = func.time_evaluator(func.entry_name, tvm.cpu(), number=3, repeat=4)(*arrays)
    assert len(found.results) == 4 and found.min <= found.median <= found.max and "mean (ms)" in str(found)
    assert len(func.time_evaluator("main", number=1)(*(given[one][...] for one in args)).results) == 1
    assert "scaled" in func.get_source() and repr(func) == "Function(scaled: c, b, a)" and func.entry_func is func


def test_times_are_means_after_a_call_that_is_not_timed() -> None:
    clock = iter([0.0, 1.0, 1.0, 3.0, 3.0, 9.0, 9.0, 15.0]).__next__
    calls: list[int] = []
    rests: list[int] = []
    found = timed(lambda: calls.append(1), 2, 2, 4.0, lambda: rests.append(1), 2, clock)
    assert len(calls) == 1 + 2 + 9 + 19 + 19 and rests == [1], "the number is raised until a repeat takes long enough, and then kept"
    assert found.results == (6 / 19, 6 / 19)


def test_lowering() -> None:
    a, b, c = scaled()
    s = te.create_schedule(c.op)
    assert "for c_i in 8" in str(tvm.lower(s, [a, b, c], simple_mode=True))
    task = tvm.auto_scheduler.SearchTask(compute_dag=auto_scheduler.ComputeDAG([a, b, c]), target=tvm.target.Target("llvm -mcpu=core-avx2"))
    assert task.target == "llvm -keys=cpu -mcpu=core-avx2"
    assert "for c_i in 8" in str(tvm.lower(*task.compute_dag.apply_steps_from_state(task.compute_dag.init_state)))
    for verb in (tvm.lower, tvm.build):
        with pytest.raises(ScheduleError, match="give the schedule and its arguments"):
            verb(c, [a, b, c])  # type: ignore[arg-type]  # that is the point


def test_targets() -> None:
    with tvm.target.Target("llvm -mcpu=core-avx2") as target:
        assert tvm.target.Target.current() is target and target.kind.name == "llvm" and target.mcpu == "haswell" and target.keys == ("cpu",)
        with target, tvm.target.Target("llvm"):
            assert tvm.target.Target.current() == "llvm -keys=cpu"
        assert tvm.target.Target.current() is target
    assert tvm.target.Target.current() is None and tvm.target.Target.current(allow_none=False) == "llvm -keys=cpu"
    assert tvm.target.Target("llvm", host="llvm").host == "llvm -keys=cpu"
    with pytest.raises(TargetError, match="only CPUs are supported"):
        tvm.target.Target("sheet of paper")
    with pytest.raises(TargetError, match="with the option -bogus"):
        tvm.target.Target("llvm -bogus=1")
    with pytest.raises(TargetError, match="only CPUs are supported"):
        tvm.device("quantum", 0)
    assert tvm.device("llvm", 1) == tvm.cpu(1) and str(tvm.cpu()) == "cpu(0)" and tvm.cpu().exist


def test_targets_know_their_parts() -> None:
    target = tvm.target.Target({"kind": "llvm", "mcpu": "core-avx2", "mattr": ["+avx2", "+fma"], "num-cores": 4, "host": {"kind": "llvm"}})
    assert target == "llvm -keys=cpu -mcpu=core-avx2 -mattr=+avx2,+fma -num-cores=4" and target.host == "llvm -keys=cpu" and target.mattr == ("+avx2", "+fma")
    assert target.attrs == {"mcpu": "core-avx2", "mattr": ("+avx2", "+fma"), "num-cores": "4"} and target.libs == () and target.model == "unknown"
    again = tvm.target.Target(target.export())
    assert again.export() == target.export() and again.host is not None and again.host.kind == "llvm"
    copied = pickle.loads(pickle.dumps(target))
    assert (copied, copied.host, type(copied)) == (target, target.host, tvm.target.Target)
    assert tvm.target.Target(target).host == target.host and tvm.target.Target("c").kind == "c"
    with pytest.raises(TargetError, match="name its kind"):
        tvm.target.Target({"mcpu": "native"})


def test_tasks_have_targets_with_parts() -> None:
    dag = auto_scheduler.ComputeDAG(list(scaled()))
    for given in ("llvm -mcpu=core-avx2", tvm.target.Target("llvm -mcpu=core-avx2", host="llvm")):
        task = auto_scheduler.SearchTask(compute_dag=dag, workload_key="parts", target=given)
        assert isinstance(task.target, tvm.target.Target) and task.target.kind.name == "llvm" and task.target.attrs["mcpu"] == "core-avx2"
    assert task.target.host == task.target_host == "llvm -keys=cpu"
    assert auto_scheduler.SearchTask(compute_dag=dag, workload_key="parts", target="llvm", target_host="llvm -mtriple=x").target.host == "llvm -mtriple=x"


def test_other_devices_can_be_named_but_do_not_exist() -> None:
    for other in (tvm.device("cuda", 1), tvm.cuda(1), tvm.device("cuda -arch=sm_80", 1)):
        assert not other.exist and str(other) == "cuda(1)"
    assert tvm.device("llvm").exist and tvm.runtime.enabled("llvm") and not tvm.runtime.enabled("vulkan") and not tvm.contrib.nvcc.have_fp16("8.0")
    with pytest.raises(TargetError, match="asked for an array on cuda"):
        tvm.nd.array(np.zeros(3, dtype="float32"), tvm.cuda())
    target = tvm.target.Target("cuda -model=a100")
    assert target.kind.name == "cuda" and target.keys == ("cuda", "gpu") and target.model == "a100"
    a, b, c = scaled()
    with pytest.raises(TargetError, match="only CPUs are supported"):
        tvm.build(te.create_schedule(c.op), [a, b, c], target)
    with pytest.raises(TargetError, match="only CPUs are supported"):
        import_module("ansor.compat.tvm.topi.cuda").schedule_softmax(c)
    assert tvm.support.libinfo()["USE_CUDA"] == "OFF" and dict(tvm.support.libinfo())["USE_LLVM"] == "ON"


def test_arrays() -> None:
    values = np.arange(6, dtype="float32").reshape(2, 3)
    one = tvm.nd.array(values)
    other = tvm.nd.empty((2, 3), device=tvm.cpu(0))
    assert one.copyto(other) is other and (one.shape, one.dtype, one.device, len(one)) == ((2, 3), "float32", tvm.cpu(), 2)
    other[0] = 7
    copy = other.numpy()
    copy[:] = 0
    assert (other.asnumpy() == [[7, 7, 7], [3, 4, 5]]).all() and (values[0] == [0, 1, 2]).all() and other[1, 2] == 5
    assert isinstance(other, tvm.runtime.NDArray) and (np.asarray(one) == values).all()
    assert (one.copyto(tvm.cpu()).numpy() == values).all()
    with pytest.raises(ValueError, match="give values of the array's shape"):
        one.copyfrom(np.zeros(3))
    with pytest.raises(AssertionError, match="shapes differ"):
        tvm.testing.assert_allclose(one, np.zeros(3))


def test_a_folder(tmp_path: object) -> None:
    with tvm.contrib.utils.tempdir() as folder:
        path = folder / "x"
        path.write_text("x")
        assert folder.listdir() == ["x"] and folder.relpath("x") == str(path)
    assert not path.exists()


@pytest.mark.parametrize("target", ["llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72", tvm.target.arm_cpu("rk3399")])
def test_a_board_is_told_in_one_sentence_where_only_this_machine_can_run_programs(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    a = te.placeholder((8,), name="a")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="b")
    with pytest.raises(TargetError, match="an ARM processor, but this machine is x86-64") as raised:
        tvm.build(te.create_schedule(b.op), [a, b], target)
    assert len(str(raised.value)) < 400 and "\n" not in str(raised.value)


def test_operators_take_arguments_as_topi_does() -> None:
    data, weight = te.placeholder((1, 4, 8, 8), name="data"), te.placeholder((6, 4, 3, 3), name="weight")
    grouped = te.placeholder((6, 2, 3, 3), name="grouped")
    x, y, bias = te.placeholder((2, 3, 4), name="x"), te.placeholder((2, 5, 4), name="y"), te.placeholder((5,), name="bias")
    shapes = {
        (1, 6, 8, 8): [topi.nn.conv2d(data, weight, 1, 1, 1, "NCHW"), topi.nn.conv2d(data, weight, (1, 1), (1, 1), (1, 1), out_dtype="float32"),
                       topi.nn.group_conv2d_nchw(data, grouped, 1, 1, 1, 2), topi.nn.conv2d_nchw(data, weight, 1, 1, 1)],
        (1, 4, 4, 4): [topi.nn.pool2d(data, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"), topi.nn.pool2d(data, [2, 2], [2, 2], [1, 1], [0, 0, 0, 0], "avg")],
        (1, 4, 1, 1): [topi.nn.global_pool(data, "avg"), topi.nn.adaptive_pool(data, (1, 1), "avg")],
        (1, 256): [topi.nn.flatten(data)],
        (1, 4, 10, 10): [topi.nn.pad(data, [0, 0, 1, 1]), topi.nn.pad(data, [0, 0, 2, 2], [0, 0, 0, 0], 1.0, "padded")],
        (2, 3, 5): [topi.nn.batch_matmul(x, y), topi.nn.batch_matmul(x, y, (2, 3, 5), "float32")],
        (2, 3, 4): [topi.nn.softmax(x), topi.nn.log_softmax(x, -1), topi.nn.relu(x), topi.nn.leaky_relu(x, 0.1), topi.tanh(x), topi.add(x, x)],
        (2, 3): [topi.sum(x, axis=-1)],
    }  # fmt: skip
    assert all(found.shape == shape for shape, tensors in shapes.items() for found in tensors)
    left, right = te.placeholder((3, 4), name="left"), te.placeholder((4, 5), name="right")
    assert topi.nn.matmul(left, right, bias).shape == topi.matmul(left, right).shape == (3, 5) and topi.nn.dense(left, left).shape == (3, 3)
    turned = topi.nn.conv2d_transpose_nchw(data, te.placeholder((4, 2, 3, 3), name="k"), (2, 2), (1, 1), "float32", (1, 1))
    assert turned.shape == (1, 2, 16, 16) and topi.utils.get_const_tuple(turned.shape) == (1, 2, 16, 16) and topi.utils.get_const_int(np.int64(3)) == 3
    with pytest.raises(DeclarationError, match="omit oshape"):
        topi.nn.batch_matmul(x, y, (1, 1))


def test_stages_that_only_move_elements_are_inlined() -> None:
    data, weight = te.placeholder((1, 4, 8, 8), name="data"), te.placeholder((6, 4, 3, 3), name="weight")
    out = topi.nn.relu(topi.nn.conv2d(topi.nn.relu(data), weight, 1, 0, 1))
    s, seen = te.create_schedule(out.op), list[str]()
    topi.utils.traverse_inline(s, out.op, lambda op: seen.append(op.name))
    assert seen == ["relu", "conv2d", "relu"] and str(tvm.lower(s, [data, weight, out])).count("conv2d") > 0


def test_attributes_of_states_and_measurements() -> None:
    result = auto_scheduler.MeasureResult([0.25, 0.5], 0, "", 1.0, 0)
    assert [getattr(cost, "value", None) for cost in result.costs] == [0.25, 0.5] == list(result.costs)
    a, b, c = scaled()
    s = te.create_schedule(c.op)
    (local,) = s.cache_write([c], "local")
    assert s[local].name != s[c].name and len(s.stages) > 1
    assert tvm.__version__ == "0.9.0" and tvm.tir.indexmod is te.indexmod and tvm.runtime.ndarray.empty is tvm.nd.empty
    assert tvm.auto_scheduler.loop_state.Stage.COMPUTE_AT_TRANS_TABLE["iter"] == 2


def test_the_registry_of_workloads() -> None:
    registry: dict[str, object] = tvm.auto_scheduler.workload_registry.WORKLOAD_FUNC_REGISTRY
    tvm.auto_scheduler.register_workload("compat registry", lambda n: list(scaled(n)), override=True)
    key: str = tvm.auto_scheduler.workload_registry.register_workload_tensors("compat tensors", list(scaled()))
    assert {"compat registry", key} <= set(registry) and len(registry) >= 2
    for name in ("compat registry", key):
        entry = tvm.auto_scheduler.workload_registry.serialize_workload_registry_entry(name)
        del registry[name]
        assert name not in registry
        tvm.auto_scheduler.workload_registry.deserialize_workload_registry_entry(pickle.loads(pickle.dumps(entry)))
        assert name in registry
        del registry[name]


def test_visited_indices_of_a_random_tuner() -> None:
    space = autotvm.ConfigSpace()
    space.define_knob("one", list(range(8)))
    tuner = autotvm.RandomTuner(space, range_idx=(2, 5))
    tuner.next_batch(4)
    assert tuner.visited == {2, 3, 4, 5}


def test_topi_schedules_and_paddings() -> None:
    a, b, c = scaled()
    func = tvm.build(topi.generic.schedule_injective([c]), [a, b, c], "llvm")
    assert func.entry_name and topi.x86.schedule_reduce(c).outputs
    assert topi.nn.utils.get_pad_tuple((1, 2), (3, 5)) == (1, 2, 1, 2) and topi.nn.get_pad_tuple("SAME", (3, 5)) == (1, 2, 1, 2)
    matrices = topi.nn.winograd_transform_matrices(2, 3, "float32")
    assert [matrix.shape for matrix in matrices] == [(4, 2), (4, 4), (4, 3)]
    with pytest.raises(DeclarationError, match="give tiles of 2 or 4"):
        topi.nn.winograd_transform_matrices(6, 3, "float32")
    with pytest.raises(DeclarationError, match="0.5"):
        topi.nn.winograd_transform_matrices(2, 3, "int32")
    assert topi.nn.winograd_transform_matrices(4, 3, "bfloat16")[0].dtype == "bfloat16"
    key = auto_scheduler.ComputeDAG([matrices[0]]).workload_key()
    assert key == '["7439b89283b7f51fce7d02da19ad4417", [4, 2]]'  # records refer to it


def test_lowered_functions_can_be_printed_and_built() -> None:
    a, b, c = scaled()
    s = te.create_schedule(c.op)
    s[c].fuse(*s[c].split(c.op.axis[0], 4))
    lowered = tvm.lower(s, [a, b], name="scaled")
    assert lowered["main"] is lowered["scaled"] is lowered and [one.name for one in lowered.arguments] == ["a", "b", "c"] and str(lowered) == lowered.script()
    with pytest.raises(AttributeError, match="a module that holds 'scaled'"):
        lowered["other"]
    with pytest.raises(ScheduleError, match="omit binds"):
        tvm.lower(s, [a, b, c], binds={a: None})
    assert [type(relation).__name__ for relation in s[c].relations] == ["SplitRelation", "FuseRelation"]
    out = tvm.nd.empty((8, 12))
    tvm.build(lowered, target="llvm")(np.ones((8, 12), "float32"), np.arange(12, dtype="float32"), out)
    np.testing.assert_array_equal(np.asarray(out), np.tile(np.arange(12, dtype="float32"), (8, 1)))


def test_tvms_names_of_arguments() -> None:
    assert te.reduce_axis(dom=(0, 4), name="k").extent == 4
    assert auto_scheduler.ComputeDAG(compute_or_sche=list(scaled())).dag.outputs[0].name == "c"
    auto_scheduler.LocalBuilder(timeout=5, n_parallel=1, build_func="default")
    auto_scheduler.LocalRunner(timeout=5, number=1, repeat=1, min_repeat_ms=0, cooldown_interval=0.0, enable_cpu_cache_flush=False, device=0)
    auto_scheduler.TuningOptions(
        num_measure_trials=0, early_stopping=None, num_measures_per_round=4, verbose=0, builder="local", runner="local", measure_callbacks=None
    )  # fmt: skip

    def declared(n: int) -> tuple[Schedule, list[Tensor]]:
        a, b, c = scaled(n)
        return te.create_schedule(c.op), [a, b, c]

    assert autotvm.template("compat call", declared)(4)[1][2].shape == (4, 12)
    assert autotvm.register_topi_compute("compat half", func=lambda cfg, n: scaled(n)[2])(4).shape == (4, 12)


def test_memoize_runs_a_function_once_for_equal_arguments() -> None:
    calls: list[int] = []

    @tvm.contrib.pickle_memoize.memoize("sums", save_at_exit=True)
    def total(numbers: list[int], start: int = 0) -> int:
        calls.append(1)
        return sum(numbers, start)

    assert [total([1, 2]), total([1, 2]), total([1, 2], start=1), total([1, 2], start=1)] == [3, 3, 4, 4] and len(calls) == 2
    assert total.__name__ == "total"
