"""States as programs: they have the same loops after a log line, correct results, and a sentence for what is left out."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from ansor import te
from ansor.auto_scheduler import (
    ComputeDAG,
    HardwareParams,
    MeasureInput,
    MeasureResult,
    RecordedTask,
    State,
    dump_record_to_string,
    load_record_from_string,
)
from ansor.compat.auto_scheduler.steps import step_from_list
from ansor.errors import ScheduleError
from ansor.ir.evaluate import evaluate
from ansor.ir.simplify import simplified
from ansor.schedule.sketch import Sketch
from ansor.support.json_values import Json
from ansor.te import workloads
from ansor.te.tensor import Tensor
from tests.auto_scheduler.declared import SMALL, check_interpreted, matmul_dag, small_inputs, tiled_matmul
from tests.auto_scheduler.random_states import random_state
from tests.declarations import Case, seeded_draw
from tests.programs import TARGETS, Bench, Program

SEEDS = range(6)


def program_of(dag: ComputeDAG, state: State) -> Sketch:
    return dag.replay(state).sketch


def again(dag: ComputeDAG, state: State) -> State:
    """The state read back from a log line."""
    task = RecordedTask('["any"]', "llvm", HardwareParams(2), "", None, None)
    line = dump_record_to_string(MeasureInput(task, state), MeasureResult([1.0], 0, "", 1.0, 2.0))
    return dag.state_of(load_record_from_string(line)[0].state)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", SMALL)
def test_random_states_round_trip_through_logs_and_match_the_declaration(name: str, seed: int) -> None:
    dag = ComputeDAG(SMALL[name]())
    state = random_state(dag, seeded_draw(1000 * seed + len(name)), 14)
    read = again(dag, state)
    assert read == state and read.transform_steps == state.transform_steps and str(read) == str(state)
    program, other = program_of(dag, state), program_of(dag, read)
    assert str(other) == str(program) and str(other.lower_row(())) == str(program.lower_row(()))
    check_interpreted(dag, program, state)
    bounds = dag.infer_bound_from_state(state)
    assert all(one.range is not None for stage in bounds.stages for one in stage.iters if stage.compute_at != 1)
    assert str(dag.infer_bound_from_state(bounds)) == str(bounds)


@pytest.mark.compiler
@pytest.mark.parametrize("name", SMALL)
def test_random_states_compiled_equal_numpy(name: str, bench: Bench) -> None:
    dag = ComputeDAG(SMALL[name]())
    inputs = small_inputs(dag)
    case = Case(name, dag.dag, inputs, dict(zip([one.name for one in dag.dag.outputs], evaluate(dag.dag.outputs, inputs), strict=True)))
    states = [random_state(dag, seeded_draw(7 + 1000 * seed), 14) for seed in range(10)]
    programs = [Program(case, program_of(dag, state), (), TARGETS[k % len(TARGETS)], "program") for k, state in enumerate(states)]
    for program, state, problem in zip(programs, states, bench.problems(programs), strict=True):
        assert not problem, f"{problem}\n{program}\n{state}\n{program.source.text}"


def test_what_a_fused_loop_becomes() -> None:
    dag, state = tiled_matmul()
    text = str(simplified(program_of(dag, state).lower_row(())))
    assert "parallel for C_i_0 in 8\n  parallel for C_j_0 in 4\n    for C_i_1 in 4" in text
    assert "vectorized for C_local_j_3 in 4" in text and "for C_local_k_0 in 32  (unroll up to 64)" in text and "_f " not in text


def test_splitting_a_fused_loop_makes_it_a_single_loop() -> None:
    dag, _, _, c = matmul_dag(6, 4, 8)
    state = dag.get_init_state()
    fused = state.fuse(c, state[c].iters[:2])
    state.split(c, fused, [5])
    program = program_of(dag, state)
    assert [type(step).__name__ for step in program.steps] == ["Fuse", "Split"]
    check_interpreted(dag, program)


def test_vectors_run_along_the_innermost_nontrivial_loop() -> None:
    dag, _, _, c = matmul_dag(8, 16, 4)
    state = dag.get_init_state()
    i, j, k = state[c].iters
    outer, inner = state.split(c, i, [1])
    state.reorder(c, [outer, k, j, inner])
    state.vectorize(c, state.fuse(c, state[c].iters[2:]))
    program = program_of(dag, state)
    assert program.state["C"].loops == ("i_0", "k", "i_1", "j") and program.state["C"].annotations.vectorize == {"j": 1} and not dag.replay(state).notes
    check_interpreted(dag, program)


def test_mixed_loops_are_nested() -> None:
    dag, _, _, c = matmul_dag(4, 4, 4)
    state = dag.get_init_state()
    state.fuse(c, state[c].iters[1:])
    check_interpreted(dag, program_of(dag, state))
    state.split(c, state[c].iters[1], [2])
    with pytest.raises(ScheduleError, match="which mix spatial and reduction loops"):
        program_of(dag, state)


def test_fusing_no_loops() -> None:
    """TVM does this to make a stage without outer loops parallel."""
    dag = ComputeDAG(workloads.zero_rank_reduce(16))
    state = dag.get_init_state()
    fused = state.fuse("B", [])
    state.parallel("B", fused)
    assert [one.name for one in state["B"].iters] == ["", "k"] and not dag.replay(state).notes
    check_interpreted(dag, program_of(dag, state))
    assert [one.range.extent for one in dag.infer_bound_from_state(state)["B"].iters if one.range] == [1, 16]


def test_splits_by_number_of_parts_depend_on_the_place() -> None:
    """For a stage computed inside another, a split by number of parts depends on the region computed there."""
    data = te.placeholder((8, 64), name="x")
    one = te.compute(data.shape, lambda i, j: data[i, j] + 1.0, name="one")
    dag = ComputeDAG([data, te.compute(data.shape, lambda i, j: one[i, j] * 2.0, name="two")])
    state = dag.get_init_state()
    state.compute_at("one", "two", state.split("two", state["two"].iters[1], [16])[0])
    state.split("one", state["one"].iters[1], [4], False)
    found = dag.infer_bound_from_state(state)
    assert [loop.range.extent for loop in found["one"].iters if loop.range] == [1, 4, 4]
    check_interpreted(dag, program_of(dag, state))


def test_a_step_sequence_from_tvms_search() -> None:
    """Partial results along rows, inlined and moved stages, several fused loops: as in its logs for a softmax."""
    dag = ComputeDAG(workloads.softmax_nm(4, 60))
    steps: list[Json] = [
        ["SP", 3, 1, 60, [5], 1], ["RF", 3, 2, 1], ["RE", 3, [0, 2, 1]], ["SP", 1, 1, 60, [4], 1], ["RF", 1, 2, 1], ["RE", 1, [0, 2, 1]], ["CR", 6],
        ["CA", 5, 6, 1], ["CR", 4], ["CA", 2, 3, 1], ["AN", 1, 0, 3], ["FU", 3, [0, 1]], ["AN", 3, 0, 3], ["AN", 4, 0, 3], ["FU", 6, [0, 1]], ["AN", 6, 0, 3],
        ["PR", 1, 0, "auto_unroll_max_step$16"], ["PR", 5, 0, "auto_unroll_max_step$64"],
    ]  # fmt: skip
    state = dag.get_init_state().apply([step_from_list(step) for step in steps])
    assert [stage.name for stage in state.stages] == ["A", "max.rf", "max.repl", "exp", "expsum.rf", "expsum.repl", "norm"]
    check_interpreted(dag, program_of(dag, state))


def test_a_layer_of_a_network_as_tvm_logged_it() -> None:
    """Its declaration of a 1x1 convolution with bias, and steps from such a log: tiles, inlined copies, threads over seven loops."""
    data, weight, bias = te.placeholder((1, 8, 8, 16)), te.placeholder((1, 1, 16, 32)), te.placeholder((1, 1, 1, 32))
    pad = te.compute(data.shape, lambda i0, i1, i2, i3: data[i0, i1, i2, i3], name="pad_temp")
    ry, rx, rc = (te.reduce_axis((0, extent), name=name) for name, extent in (("ry", 1), ("rx", 1), ("rc", 16)))
    conv = te.compute((1, 8, 8, 32), lambda nn, yy, xx, ff: te.sum(pad[nn, yy + ry, xx + rx, rc] * weight[ry, rx, rc, ff], axis=[ry, rx, rc]), name="conv")
    added = te.compute(conv.shape, lambda a, b, c, d: conv[a, b, c, d] + bias[a, 0, 0, d], name="T_add")
    dag = ComputeDAG([data, weight, bias, te.compute(conv.shape, lambda a, b, c, d: te.max(added[a, b, c, d], 0.0), name="T_relu")])
    steps: list[Json] = [
        ["CI", 5], ["SP", 3, 0, 1, [1, 1, 1], 1], ["SP", 3, 4, 8, [2, 1, 2], 1], ["SP", 3, 8, 8, [1, 4, 1], 1], ["SP", 3, 12, 32, [1, 1, 16], 1],
        ["SP", 3, 16, 1, [1], 1], ["SP", 3, 18, 1, [1], 1], ["SP", 3, 20, 16, [8], 1],
        ["RE", 3, [0, 4, 8, 12, 1, 5, 9, 13, 16, 18, 20, 2, 6, 10, 14, 17, 19, 21, 3, 7, 11, 15]],
        ["FSP", 6, 0, 1, 2], ["FSP", 6, 3, 2, 2], ["FSP", 6, 6, 3, 2], ["FSP", 6, 9, 4, 2], ["RE", 6, [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]],
        ["CA", 3, 6, 7], ["CI", 1], ["FU", 6, [0, 1, 2, 3, 4, 5, 6]], ["AN", 6, 0, 3], ["PR", 3, 0, "auto_unroll_max_step$512"], ["AN", 3, 21, 2],
        ["AN", 6, 5, 2],
    ]  # fmt: skip
    state = dag.get_init_state().apply([step_from_list(step) for step in steps])
    found = dag.replay(state)
    assert found.sketch.state["T_relu"].annotations.parallel == 7 and found.sketch.state["conv"].annotations.vectorize == {"ff_3": 1} and not found.notes
    check_interpreted(dag, found.sketch)


Change = Callable[[State, Tensor], object]
LEFT_OUT: dict[str, Change] = {
    "only outermost loops of stages at root can be": lambda s, c: s.parallel(c, s[c].iters[1]),
    "only the innermost loop can be": lambda s, c: s.vectorize(c, s[c].iters[0]),
    "it has no effect on a processor": lambda s, c: s.storage_align(c, s[c].iters[0], 32, 8),
    "more than 4096 statements": lambda s, c: s.unroll(c, s.fuse(c, s[c].iters[:2])),
    "up to 4096 steps": lambda s, c: s.pragma(c, s[c].iters[0], "auto_unroll_max_step$99999"),
}


@pytest.mark.parametrize("sentence, change", LEFT_OUT.items(), ids=LEFT_OUT)
def test_omissions_are_reported(sentence: str, change: Change, caplog: pytest.LogCaptureFixture) -> None:
    dag, _, _, c = matmul_dag(128, 64, 8)
    state = dag.get_init_state()
    change(state, c)
    with caplog.at_level(logging.WARNING, logger="auto_scheduler"):
        dag.apply_steps_from_state(state)
    assert sentence in caplog.text and len(dag.replay(state).notes) == 1


REFUSED: dict[str, Change] = {
    "is threadIdx.x, which processors do not have": lambda s, c: s.bind(c, s[c].iters[0], "threadIdx.x"),
    "pragma debug_skip_region": lambda s, c: s.pragma(c, s[c].iters[0], "debug_skip_region"),
    "in parallel, which are reduction loops": lambda s, c: s.parallel(c, s[c].iters[2]),
    "vectorize a spatial loop": lambda s, c: s.vectorize(c, s[c].iters[2]),
    "which is a reduction": lambda s, c: s.compute_inline(c),
}


@pytest.mark.parametrize("sentence, change", REFUSED.items(), ids=REFUSED)
def test_states_that_would_change_the_program_are_refused(sentence: str, change: Change) -> None:
    dag, _, _, c = matmul_dag(8, 8, 8)
    state = dag.get_init_state()
    change(state, c)
    with pytest.raises(ScheduleError, match=sentence):
        dag.apply_steps_from_state(state)


def test_lengths_may_be_open_in_a_program() -> None:
    dag, _, _, c = matmul_dag(32, 32, 32)
    state = dag.get_init_state()
    state.split(c, state[c].iters[0], [None, None, None])
    state.follow_split(c, state[c].iters[4], 0, 2)
    program = program_of(dag, state)
    assert [choice.name for choice in program.choices] == ["C.i"] and program.state["C"].loops == ("i_0", "i_1", "i_2", "i_3", "j_0", "j_1", "j_2", "k")
    check_interpreted(dag, Sketch(program.dag, program.concrete_steps([5])))
