"""Declarations with TVM's order, names and keys."""

import json
import pickle

import pytest

from ansor import te
from ansor.auto_scheduler import ComputeDAG, HardwareParams, SearchTask, State
from ansor.errors import DeclarationError, ScheduleError
from ansor.te import workloads
from ansor.te.expr import Axis, Reduce
from ansor.te.tensor import Compute, Tensor
from tests.auto_scheduler.declared import check_interpreted, matmul_dag, tiled_matmul


@pytest.mark.parametrize("name, args, order", [
    ("matmul", (8, 8, 8), "A B C"), ("double_matmul", (8,), "A B D C E"), ("min_nm", (10, 16), "A B"), ("softmax_nm", (2, 8), "A max exp expsum norm"),
    ("conv2d_nchw_bn_relu", (1, 8, 8, 4, 4, 3, 1, 1), "Data pad Kernel conv Bias Bias_add Bn_scale Bn_mul Bn_offset Bn_add relu"),
    ("conv2d_winograd_nhwc", (1, 8, 8, 4, 4, 3, 1, 1), "inputs data_pad input_tile B data_pack weight bgemm A inverse conv2d_winograd"),
    ("max_pool2d", (1, 8, 8, 4, 1), "Data pad pool"),
])  # fmt: skip
def test_stages_are_numbered_as_in_tvm(name: str, args: tuple[int, ...], order: str) -> None:
    dag = ComputeDAG(getattr(workloads, name)(*args))
    assert " ".join(op.name for op in dag.ops) == order and [op.name for op in dag.init_state.stage_ops] == order.split()


def test_indices_come_before_what_they_index() -> None:
    index, table = te.placeholder((3,), "int32", name="index"), te.placeholder((9,), name="table")
    rows = te.compute((3,), lambda i: table[index[i]], name="rows")
    assert [op.name for op in ComputeDAG([table, index, rows]).ops] == ["index", "table", "rows"]
    assert [op.name for op in ComputeDAG([rows, table, index]).ops] == ["table", "index", "rows"]


def _parallel_matmul(n: int) -> tuple[ComputeDAG, list[Tensor]]:
    a, b, c = (te.placeholder((n, n), name=name) for name in "ABC")
    k = te.reduce_axis((0, n), name="k")
    d = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="D")
    k2 = te.reduce_axis((0, n), name="k")
    e = te.compute((n, n), lambda i, j: te.sum(a[i, k2] * c[k2, j], axis=k2), name="E")
    return ComputeDAG([a, b, c, d, e]), [a, b, c, d, e]


def test_stage_order() -> None:
    """Copies come after their source, private tiles before the stage they are copied to."""
    dag, (a, b, c, d, e) = _parallel_matmul(8)
    state = dag.get_init_state()
    d_local, e_local = state.cache_write(d, "local"), state.cache_write(e, "local")
    for source, reader in ((a, d_local), (b, d_local), (a, e_local), (c, e_local)):
        state.cache_read(source, "shared", [reader])
    names = [stage.name for stage in state.stages]
    assert len(names) == 11 and names[names.index("A") + 1 :][:2] == ["A.d.shared", "A.shared"]
    assert all(names[names.index(name) + 1] == f"{name}.shared" for name in "BC")
    assert all(names[names.index(name) - 1] == f"{name}.local" for name in "DE")
    check_interpreted(dag, dag.apply_steps_from_state(state)[0])

    again = pickle.loads(pickle.dumps(dag))
    assert str(again) == str(dag) and [op.name for op in again.ops] == [op.name for op in dag.ops] and again.workload_key() == dag.workload_key()
    params = HardwareParams(4, 16, 64, 0, 0, 0, 0, 0)
    task = SearchTask(compute_dag=dag, workload_key="test1", target="llvm", hardware_params=params)
    same: SearchTask = pickle.loads(pickle.dumps(task))
    assert same.hardware_params == params and same.workload_key == "test1" and str(same.compute_dag) == str(dag) and same.recorded == task.recorded


def test_apply_steps() -> None:
    dag, state = tiled_matmul()
    text = dag.print_python_code_from_state(state)
    assert "C_local_i_c_o, C_local_i_c_i = s[C_local].split(C_local_i_c, factor=2)\n" in text and "s[C_local].compute_at(s[C], C_j_o_i)\n" in text
    program, args = dag.apply_steps_from_state(state)
    assert args == dag.tensors and str(program.lower_row(())).count("for ") == 16


def test_infer_bound() -> None:
    dag, state = tiled_matmul()
    found = dag.infer_bound_from_state(state)
    assert [one.range.extent for one in found["C.local"].iters if one.range] == [1, 1, 1, 1, 32, 8, 8, 16, 2, 4]
    assert found["C"].iters == state["C"].iters and found.transform_steps == state.transform_steps


def test_estimate_flop() -> None:
    n = 512
    dag, a, b, c = matmul_dag(n, n, n)
    assert dag.flop_ct == 2 * n**3
    relu = te.compute((n, n), lambda i, j: te.max(c[i, j], 0.0), name="D")
    assert ComputeDAG([a, b, relu]).flop_ct == 2 * n**3 + n * n
    # the condition of the pad costs nothing
    pad = te.compute((n, n), lambda i, j: te.if_then_else(te.all(i >= 0, i < n, j >= 0, j < n), c[i, j], 0.0), name="E")
    assert ComputeDAG([a, b, pad]).flop_ct == 2 * n**3
    given = te.compute((n, n), lambda i, j: c[i, j], name="F", attrs={"FLOP": 66})
    assert ComputeDAG([a, b, given]).flop_ct == 2 * n**3 + 66
    # a comparison of values is arithmetic
    chosen = te.compute((n, n), lambda i, j: te.if_then_else(c[i, j] > 0.0, c[i, j], 0.0), name="G")
    assert ComputeDAG([a, b, chosen]).flop_ct == 2 * n**3 + n * n


def test_invalid_compute_dag() -> None:
    a, b = te.placeholder((10, 16), name="A"), te.placeholder((16, 8), name="B")
    k = te.reduce_axis((0, 16), name="i")
    with pytest.raises(DeclarationError, match="two axes named 'i'"):
        te.compute((10, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    i, j = Axis("i", 10), Axis("j", 8)
    body = Reduce("sum", a[i, k] * b[k, j], (k,), "float32")
    with pytest.raises(DeclarationError, match="C has two axes named 'i'; rename one"):
        ComputeDAG([a, b, Tensor("C", (10, 8), "float32", Compute((i, j), (k,), body))])


KEYS = {
    # keys of network layers in TVM's logs; the declarations are TVM's operators, with TVM's names
    "8654f16aeddf785bad9f028164b3a48d": (1, 0), "06f578e6519a86e85028eecf4de64b25": (2, 0), "1037be767e8e18197e87653d81c34558": (1, 1),
}


def _layer(stride: int, bias: int) -> list[Tensor]:
    data, weight = te.placeholder((1, 8, 8, 16)), te.placeholder((1, 1, 16, 32))
    pad = te.compute(data.shape, lambda i0, i1, i2, i3: data[i0, i1, i2, i3], name="pad_temp")
    ry, rx, rc = (te.reduce_axis((0, extent), name=name) for name, extent in (("ry", 1), ("rx", 1), ("rc", 16)))
    side = 8 // stride
    conv = te.compute((1, side, side, 32), lambda nn, yy, xx, ff: te.sum(
        pad[nn, yy * stride + ry, xx * stride + rx, rc] * weight[ry, rx, rc, ff], axis=[ry, rx, rc]), name="conv2d_nhwc")  # fmt: skip
    if not bias:
        return [data, weight, conv]
    shift = te.placeholder((1, 1, 1, 32))
    added = te.compute(conv.shape, lambda ax0, ax1, ax2, ax3: conv[ax0, ax1, ax2, ax3] + shift[ax0, 0, 0, ax3], name="T_add")
    return [data, weight, shift, te.compute(conv.shape, lambda ax0, ax1, ax2, ax3: te.max(added[ax0, ax1, ax2, ax3], 0.0), name="T_relu")]


@pytest.mark.parametrize("key, layer", KEYS.items())
def test_workload_keys_equal_tvms(key: str, layer: tuple[int, int]) -> None:
    tensors = _layer(*layer)
    assert json.loads(ComputeDAG(tensors).workload_key()) == [key, *(list(tensor.shape) for tensor in tensors)]


def test_workload_keys_omit_numbers_and_use_a_custom_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = matmul_dag(8, 8, 8)[0], matmul_dag(8, 8, 16)[0]
    assert json.loads(one.workload_key())[0] == json.loads(other.workload_key())[0] and one.workload_key() != other.workload_key()
    monkeypatch.setattr(ComputeDAG, "hash_func", staticmethod(lambda text: f"{len(text.splitlines())} lines"))
    assert json.loads(one.workload_key())[0] == "3 lines"


def test_long_lines_are_abbreviated() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: sum((a[i] * float(k) for k in range(1, 60)), a[i]), name="B")
    line = str(ComputeDAG([a, b])).splitlines()[1]
    assert " ..(OMITTED).. " in line and len(line) == 256 + len(" ..(OMITTED).. ")


def test_states_of_any_kind_are_accepted() -> None:
    dag, state = tiled_matmul()
    programs = {str(dag.apply_steps_from_state(one)[0]) for one in (state, state.state_object)}
    assert len(programs) == 1 and isinstance(dag.state_of(state.state_object), State) and repr(dag) == "ComputeDAG(A, B, C)"
    with pytest.raises(ScheduleError):
        matmul_dag(8, 8, 8)[0].state_of(state).split(state.stage_ops[0], state["C"].iters[0], [2])
