"""Our schedules in TVM's steps: programs that our search finds read back as the same program and row."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.compat.auto_scheduler.compute_dag import ComputeDAG
from ansor.compat.auto_scheduler.export import state_of
from ansor.compat.auto_scheduler.steps import step_from_list
from ansor.errors import ScheduleError
from ansor.ir.simplify import simplified
from ansor.schedule.matching import found_among, row_of
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeAt, ComputeRoot, FollowSplit, PackInside, Parallel, Reorder, Rfactor, Split, Step, StorageAlign, Unroll, Vectorize
from ansor.support.json_values import Json
from ansor.tasks import task as tasks
from ansor.te import workloads
from ansor.zoo import operators
from tests.auto_scheduler.declared import matmul_dag

WORKLOADS = {
    "matmul": workloads.matmul(64, 64, 64), "long": workloads.matmul(8, 8, 512), "conv": workloads.conv2d_nchw_bn_relu(1, 14, 14, 8, 16, 3, 1, 1),
    "softmax": workloads.softmax_nm(16, 256), "pool": workloads.max_pool2d(1, 14, 14, 32, 1), "norm": operators.norm(1, 32, 64),
    "sum": workloads.zero_rank_reduce(128), "double": workloads.double_matmul(32), "winograd": workloads.conv2d_winograd_nhwc(1, 14, 14, 8, 8, 3, 1, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", WORKLOADS)
def test_searched_programs_read_back_as_the_same_program_and_row(name: str) -> None:
    dag, rng = ComputeDAG(WORKLOADS[name]), np.random.default_rng(0)
    local = tasks.SearchTask(tensors=WORKLOADS[name], target="cpu -threads=2")
    sketches = [space.sketch for space in local.spaces if not space.algorithm]
    told = 0
    for sketch in sketches[:40]:
        row = tuple(int(rng.integers(0, size)) for size in sketch.sizes)
        program = Sketch(dag.dag, sketch.concrete_steps(row))
        try:
            state = state_of(dag, program)
        except ScheduleError as error:
            assert "TVM's steps cannot express packing" in str(error) or "TVM's steps cannot express vectors along the reduction" in str(error)
            continue
        again = dag.state_of(state.state_object).copy()
        read = dag.get_init_state().apply([step_from_list(step.to_list()) for step in state.transform_steps])
        found = dag.replay(read)
        assert again == read == state and not found.notes
        assert str(simplified(found.lowered)) == str(simplified(program.lower_row(()))), f"{program}\n{found.sketch}"
        assert row_of(found.sketch, sketch) == row and found_among(found.sketch, sketches) == (sketches.index(sketch), row)
        told += 1
    assert told or name == "winograd"


SKETCHES: dict[str, list[list[Json]]] = {
    "matmul": [["SP", 2, 0, 64, [0, 0, 0], 1], ["SP", 2, 4, 64, [0, 0, 0], 1], ["SP", 2, 8, 64, [0], 1], ["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]]],
    "long": [["SP", 2, 2, 512, [0], 1], ["RF", 2, 2, 2]],
}


@pytest.mark.parametrize("name", SKETCHES)
def test_sketches_equal_tvms_step_by_step(name: str) -> None:
    from ansor.search.derive import derive_sketches

    dag, local = ComputeDAG(WORKLOADS[name]), tasks.SearchTask(tensors=WORKLOADS[name], target="cpu -threads=4")
    sketch = derive_sketches(local.dag, [rule for rule in local.rules if rule != "pack_operands"], local.target)[0]
    state = state_of(dag, Sketch(dag.dag, sketch.steps, sketch.choices))
    assert [step.to_list() for step in state.transform_steps] == SKETCHES[name] and not state.concrete


def test_a_program_of_another_sketch_has_no_row() -> None:
    local = tasks.SearchTask(tensors=WORKLOADS["matmul"], target="cpu -threads=2")
    sketches = [space.sketch for space in local.spaces]
    program = Sketch(local.dag, sketches[0].concrete_steps([0] * len(sketches[0].sizes)))
    assert row_of(program, sketches[0]) == (0,) * len(sketches[0].sizes) and row_of(program, sketches[1]) is None
    odd = Sketch(local.dag, (Split("C", "i", (33, 1, 1), 4), *program.steps[1:]))
    assert row_of(odd, sketches[0]) is None and found_among(odd, sketches) is None and found_among(Sketch(local.dag), sketches) is None
    assert row_of(Sketch(local.dag, sketches[0].steps, sketches[0].choices), sketches[0]) is None  # open lengths make no program


def test_splits_that_follow_given_lengths() -> None:
    dag, _, _, _ = matmul_dag(16, 16, 16)
    steps: list[Step] = [Split("C", "i", (2, 4), 3), FollowSplit("C", "j", (2, 4), 2), FollowSplit("C", "k", (3, 2, 2), 3), Parallel("C", 2)]
    state = state_of(dag, Sketch(dag.dag, tuple(steps)))
    assert [step.to_list() for step in state.transform_steps] == [
        ["SP", 2, 0, 16, [2, 4], 1], ["FSP", 2, 3, 0, 1], ["SP", 2, 5, 16, [3, 4], 1], ["FU", 2, [0, 1]], ["AN", 2, 0, 3],
    ]  # fmt: skip


WITHOUT: dict[str, list[Step]] = {
    "packing": [PackInside("C", "A")], "aligned rows": [ComputeRoot("D"), StorageAlign("D", 8, 0)], "vectors along the reduction k": [Vectorize("C", "k")],
    "loop i of stage C, which was fused": [Parallel("C", 2), Unroll("C", "i")],
    "whose spatial loops were already changed": [Split("C", "i", (2,), 2), Rfactor("C", "k", 0)],
    "which follows a missing split": [FollowSplit("C", "i", "nowhere", 2)],
}  # fmt: skip


@pytest.mark.parametrize("reason", WITHOUT)
def test_steps_without_a_counterpart_are_refused(reason: str) -> None:
    from ansor import te

    _, a, b, c = matmul_dag(8, 8, 8)
    d = te.compute((8, 8), lambda i, j: c[i, j] + 1.0, name="D")
    dag = ComputeDAG([a, b, te.compute((8, 8), lambda i, j: d[i, j] * 2.0, name="E")])
    with pytest.raises(ScheduleError, match=f"TVM's steps cannot express .*{reason}"):
        state_of(dag, Sketch(dag.dag, tuple(WITHOUT[reason])))


def test_places_and_orders() -> None:
    from ansor import te

    _, a, b, c = matmul_dag(8, 8, 8)
    dag = ComputeDAG([a, b, te.compute((8, 8), lambda i, j: c[i, j] * 2.0, name="E")])
    steps: tuple[Step, ...] = (Reorder("E", ("j", "i")), ComputeAt("C", "E", "j"), Vectorize("E", "i"), Vectorize("C", "k", 0), Parallel("E", 1))
    state = state_of(dag, Sketch(dag.dag, steps))
    assert [step.to_list() for step in state.transform_steps] == [["RE", 3, [1, 0]], ["CA", 2, 3, 0], ["AN", 3, 1, 2], ["AN", 3, 0, 3]]
    with pytest.raises(ScheduleError, match="packing"):
        state_of(dag, Sketch(dag.dag, (PackInside("C", "B"),)))
