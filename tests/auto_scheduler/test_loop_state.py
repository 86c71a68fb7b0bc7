"""Every step by hand: names, numbers, extents, and errors."""

import pickle
from collections.abc import Callable

import pytest

from ansor import te
from ansor.auto_scheduler import ComputeDAG, State
from ansor.compat.auto_scheduler.stages import ComputeAtKind, Iterator, Range, Stage
from ansor.compat.auto_scheduler.steps import IteratorAnnotation, LoggedStep
from ansor.errors import ScheduleError
from ansor.te import nn, workloads
from ansor.te.tensor import Tensor
from tests.auto_scheduler.declared import matmul_dag, tiled_matmul


def extents(stage: Stage) -> list[int | None]:
    return [one.range.extent if one.range else None for one in stage.iters]


def names(stage: Stage) -> str:
    return " ".join(one.name for one in stage.iters)


def test_split_fuse_reorder_annotation() -> None:
    dag, _, _, c = matmul_dag()
    state = dag.get_init_state()
    i, j, k = state[c].iters
    assert extents(state[c]) == [512, 512, 512] and i.range == Range(0, 512)
    io, ii = state.split(c, i, [16])
    jo, ji = state.split(c, j, [8])
    assert state[c].iters[:2] == (io, ii) and (io.name, ii.name) == ("i.0", "i.1") and extents(state[c]) == [32, 16, 64, 8, 512]
    state.reorder(c, [io, jo, k, ji, ii])
    assert extents(state[c]) == [32, 64, 512, 8, 16]
    fused = state.fuse(c, [io, jo])
    assert fused == state[c].iters[0] and fused.name == "i.0@j.0@" and fused.range == Range(0, 2048)

    state = dag.get_init_state()
    i, j, _ = state[c].iters
    i1, i2, i3 = state.split(c, i, [8, 2])
    j1, j2, j3 = state.split(c, j, [32, 8], False)
    assert extents(state[c])[:6] == [32, 8, 2, 32, 8, 2]
    given: list[tuple[Iterator, int]] = [
        (state.bind(c, i1, "blockIdx.x"), 5), (state.bind(c, i2, "vthread"), 4), (state.bind(c, i3, "threadIdx.y"), 8), (state.parallel(c, j1), 3),
        (state.unroll(c, j2), 1), (state.vectorize(c, j3), 2),
    ]  # fmt: skip
    for place, (loop, number) in enumerate(given):
        assert loop == state[c].iters[place] and loop.annotation == number
    assert State.ANNOTATION_TRANS_TABLE["blockIdx.x"] == 5 and State.ANNOTATION_TRANS_TABLE["none"] == 0 and len(State.ANNOTATION_TRANS_TABLE) == 12


def test_compute_at_root_inline() -> None:
    dag = ComputeDAG(workloads.conv2d_nchw_bn_relu(1, 224, 224, 3, 64, 7, 2, 3))
    state = dag.get_init_state()
    conv, bias_add, bn_mul, bn_add, relu = (state.stage_ops[k] for k in (3, 5, 7, 9, 10))
    for op in (bn_add, bn_mul, bias_add):
        state.compute_inline(op)
        assert state[op].compute_at == ComputeAtKind.INLINED
    whole = [1, 64, 112, 112, 3, 7, 7]
    assert extents(state[conv]) == whole
    state.compute_at(conv, relu, state[relu].iters[2])
    assert state[conv].compute_at == 2 and extents(state[conv]) == [None] * 7
    assert extents(dag.infer_bound_from_state(state)[conv]) == [1, 1, 1, 112, 3, 7, 7]
    state.compute_root(bn_mul)
    assert state[bn_mul].compute_at == 0
    state.compute_root(conv)
    assert state[conv].compute_at == 0 and extents(dag.infer_bound_from_state(state)[conv]) == whole


def test_cache_read_write() -> None:
    data, given = te.placeholder((4, 512, 7, 7), name="Data"), te.placeholder((512, 512, 3, 3), name="Kernel_data")
    kernel = te.compute(given.shape, lambda *i: given[i] + 1.0, name="Kernel")
    conv = nn.conv2d(data, kernel, 1, 1, data_layout="NCHW", name="conv")
    relu = nn.relu(conv)
    add = nn.add(data, relu, name="add")
    dag = ComputeDAG([data, given, add])
    state = dag.get_init_state()
    pad = state.stage_ops[1]
    its = state.split(add, state[add].iters[0], [2])
    rest = state[add].iters
    state.reorder(add, [its[0], rest[2], its[1], rest[3], rest[4]])
    state.compute_inline(relu)
    conv_global = state.cache_write(conv, "global")
    assert state[conv_global].name == "conv.global" and names(state[conv_global]) == "n_c co_c h_c w_c rc rh rw" and len(state[conv].iters) == 4
    state.compute_at(conv_global, conv, state[conv].iters[3])
    kernel_global = state.cache_read(kernel, "global", [conv_global])
    assert state[kernel_global].name == "Kernel.global" and names(state[kernel_global]) == "ax0 ax1 ax2 ax3"
    state.compute_at(kernel_global, conv_global, state[conv_global].iters[4])
    bounds = dag.infer_bound_from_state(state)
    found = [extents(bounds[op]) for op in (conv, kernel_global, conv_global)]
    assert found == [[4, 512, 7, 7], [1, 1, 3, 3], [1, 1, 1, 1, 512, 3, 3]]

    pad_global = state.cache_read(pad, "global", [conv_global])
    pad_shared = state.cache_read(pad_global, "shared", [conv_global])
    state.compute_at(pad_global, conv_global, state[conv_global].iters[2])
    state.compute_at(pad_shared, conv_global, state[conv_global].iters[4])
    copy = state.cache_read(data, "global", [pad, add])  # for two readers
    assert state[pad_shared].name == f"{pad.name}.global.shared" and state.stage_id(copy) == state.stage_id(data) + 1
    bounds = dag.infer_bound_from_state(state)
    found = [extents(bounds[op]) for op in (conv, kernel_global, conv_global, pad_global, pad_shared)]
    assert found == [[4, 512, 7, 7], [1, 1, 3, 3], [1, 1, 1, 1, 512, 3, 3], [1, 512, 3, 3], [1, 1, 3, 3]]


def test_follow_split_follow_fused_split() -> None:
    dag, _, _, c = matmul_dag()
    start = dag.get_init_state()
    local = start.cache_write(c, "global")
    its0 = start.split(c, start[c].iters[0], [4, 2, 8, 4], True)
    split0 = len(start.transform_steps) - 1
    for level in range(1, 6):
        state = start.copy()
        state.follow_split(local, state[local].iters[0], split0, level)
        for number in range(level):
            assert state[local].iters[number].range == its0[number].range
    its1 = start.split(c, start[c].iters[5], [2, 2, 4, 8])
    split1 = len(start.transform_steps) - 1
    its = [one for pair in zip(its0, its1, strict=True) for one in pair]
    start.reorder(c, its)
    for k in range(5):
        start.fuse(c, [start[c].iters[k], start[c].iters[k + 1]])
    for level in range(4):
        state = start.copy()
        state.follow_fused_split(local, state[local].iters[0], [split0, split1], level, False)
        assert state[c].iters[level + 1].range == state[local].iters[0].range
    for level in range(4):
        state = start.copy()
        state.follow_fused_split(local, state[local].iters[0], [split0, split1], level, True)
        assert state[c].iters[level + 1].range == state[local].iters[1].range


def test_rfactor() -> None:
    dag, _, _, c = matmul_dag(8, 8, 512)
    start = dag.get_init_state()
    ko, ki = start.split(c, start[c].iters[2], [16])
    outer, inner = start.copy(), start.copy()
    partial = outer.rfactor(c, ko, 2)
    assert extents(outer[partial]) == [8, 8, 32, 16] and extents(outer[c]) == [8, 8, 32]
    assert (outer[partial].name, outer[c].name, names(outer[partial]), names(outer[c])) == ("C.rf", "C.repl", "i j k_o k_i", "ax0 ax1 k_o_v")
    partial = inner.rfactor(c, ki, 2)
    assert extents(inner[partial]) == [8, 8, 16, 32] and extents(inner[c]) == [8, 8, 16]
    assert extents(inner.copy()[inner.stage_id(c) - 1]) == [8, 8, 16, 32] and start != outer != inner


def test_copies_are_independent() -> None:
    dag, _, _, c = matmul_dag()
    state = dag.get_init_state()
    other = state.copy()
    state.parallel(c, state[c].iters[0])
    assert not other.transform_steps and len(state.transform_steps) == 1 and state != other and other == dag.init_state
    other.parallel(c, other[c].iters[0])
    assert state == other and hash(state) == hash(other) and state.state_object == other.state_object == state and len({state, other}) == 1


def test_states_that_print_alike_are_equal() -> None:
    dag, _, _, c = matmul_dag()
    one, other = dag.get_init_state(), dag.get_init_state()
    one.split(c, one[c].iters[0], [1])  # the inner loop has one iteration
    outer = other.split(c, other[c].iters[0], [1])[0]
    other.unroll(c, other[c].iters[1])
    assert one == other and one.transform_steps != other.transform_steps and outer.name == "i.0"
    assert str(one) == "Placeholder: A, B\nfor i.0 (0,512)\n  for j (0,512)\n    for k (0,512)\n      C = ...\n"
    assert "for i.1 (0,1)" in one.state_object.to_text(delete_trivial_loop=False)


def test_text() -> None:
    _, state = tiled_matmul()
    assert str(state).splitlines()[:6] == ["Placeholder: A, B", "parallel i.0@j.0@ (0,32)", "  for i.1 (0,4)", "    for j.1 (0,4)",
                                           "      C.local auto_unroll: 64", "      for i_c.0 (None)"]  # fmt: skip
    assert str(state).splitlines()[-3:] == ["      for i.2 (0,16)", "        for j.2 (0,32)", "          C = ..."]


def test_states_can_be_pickled() -> None:
    dag, state = tiled_matmul()
    again: State = pickle.loads(pickle.dumps(state))
    assert again == state and again.transform_steps == state.transform_steps and str(again.compute_dag) == str(dag)
    assert again[again.compute_dag.tensors[2]].name == "C" and again["C.local"].iters == state["C.local"].iters


def test_open_lengths() -> None:
    dag, _, _, c = matmul_dag()
    state = dag.get_init_state()
    parts = state.split(c, state[c].iters[0], [None, None])
    assert [one.range for one in parts] == [None] * 3 and not state.concrete
    with pytest.raises(ScheduleError, match=r"open lengths \(C.i\)"):
        dag.infer_bound_from_state(state)


def test_unroll_leaves_long_loops() -> None:
    dag, _, _, c = matmul_dag()
    state = dag.get_init_state()
    i = state[c].iters[0]
    assert state.unroll(c, i, 16) is i and not state.transform_steps
    assert state.unroll(c, i, 512).annotation == IteratorAnnotation.UNROLL


def test_stage_keys() -> None:
    dag, _, b, c = matmul_dag()
    state = dag.get_init_state()
    local = state.cache_write(c, "local")
    assert [state.stage_id(key) for key in (local, c, 2, "C.local", state[c], b)] == [2, 3, 2, 2, 3, 1] and [op.name for op in state.stage_ops][-1] == "C"
    stranger = te.placeholder((1,), name="stranger")
    for key in (stranger, 4, -1, "D", True, None):
        with pytest.raises(ScheduleError, match="the stages are 0 A, 1 B, 2 C.local, 3 C"):
            state.stage_id(key)  # type: ignore[arg-type]


Change = Callable[[State, Tensor], object]
UNFIT: dict[str, Change] = {
    "which is a placeholder and has no loops": lambda s, c: s.compute_inline(0),
    "take one from state": lambda s, c: s.split(c, Iterator("x", None, s[c].iters[0].iter_kind), [2]),
    "which are not adjacent": lambda s, c: s.fuse(c, [s[c].iters[0], s[c].iters[2]]),
    "list each of them once": lambda s, c: s.reorder(c, s[c].iters[:2]),
    "give lengths of 1 or more": lambda s, c: s.split(c, s[c].iters[0], [0]),
    "annotate it once": lambda s, c: s.unroll(c, s.parallel(c, s[c].iters[0])),
    "threads are vthread, blockIdx.x": lambda s, c: s.bind(c, s[c].iters[0], "parallel"),
    "pragmas are auto_unroll_max_step": lambda s, c: s.pragma(c, s[c].iters[0], "import_c"),
    "name a stage that reads it": lambda s, c: s.compute_at(c, c, s[c].iters[0]),
    "follow an earlier SplitStep": lambda s, c: s.follow_split(c, s[c].iters[0], 0, 2),
    "which it is not part of": lambda s, c: s.rfactor(c, s[c].iters[0], 0),
    "positions are 0 to 2": lambda s, c: s.rfactor(c, s[c].iters[2], 3),
    "for no readers": lambda s, c: s.cache_read(0, "local", []),
    "a scope is a short word": lambda s, c: s.cache_write(c, "../x"),
    "were already changed": lambda s, c: (s.split(c, s[c].iters[0], [2]), s.cache_write(c, "local")),
}


@pytest.mark.parametrize("sentence, change", UNFIT.items(), ids=UNFIT)
def test_steps_that_do_not_fit_raise_and_change_nothing(sentence: str, change: Change) -> None:
    dag, _, _, c = matmul_dag(8, 8, 8)
    state = dag.get_init_state()
    with pytest.raises(ScheduleError, match=sentence.replace("(", r"\(")) as error:
        change(state, c)
    assert str(error.value).startswith("asked ")


def test_places_follow_their_loops() -> None:
    data = te.placeholder((8, 8), name="x")
    one = te.compute((8, 8), lambda i, j: data[i, j] + 1.0, name="one")
    two = te.compute((8, 8), lambda i, j: one[i, j] * 2.0, name="two")
    dag = ComputeDAG([data, two])
    state = dag.get_init_state()
    state.compute_at(one, two, state[two].iters[0])
    state.split(two, state[two].iters[0], [2])
    assert state.state_object.place(1) == (2, 1)  # the inner part
    state.reorder(two, [state[two].iters[k] for k in (1, 0, 2)])
    assert state.state_object.place(1) == (2, 0)
    with pytest.raises(ScheduleError, match="stage one is computed there"):
        state.fuse(two, state[two].iters[:2])
    with pytest.raises(ScheduleError, match="in which stage one is computed"):
        state.compute_inline(two)
    state.fuse(two, state[two].iters[1:])
    copy = state.cache_read(data, "local", [one])
    assert state.state_object.place(state.stage_id(one)) == (3, 0) and state.stage_id(copy) == 1
    state.compute_root(one)
    assert state.state_object.place(state.stage_id(one)) is None


def test_logged_steps_with_any_numbers_fit_or_are_refused() -> None:
    """Numbers are checked where steps are replayed."""
    from hypothesis import given
    from hypothesis import strategies as st

    from tests.auto_scheduler.test_steps import steps

    dag, _, _, _ = matmul_dag(8, 8, 8)

    @given(st.lists(steps, max_size=4))
    def check(found: list[LoggedStep]) -> None:
        state = dag.get_init_state()
        try:
            state.apply(found)
        except ScheduleError as error:
            assert len(str(error)) < 1000 and not state.transform_steps

    check()
