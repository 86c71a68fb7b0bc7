"""The states that a policy derives, samples and evolves."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pytest

from ansor.auto_scheduler import (
    ComputeDAG,
    EmptyPolicy,
    HardwareParams,
    MeasureInput,
    MeasureResult,
    PreloadCustomSketchRule,
    ProgramMeasurer,
    PythonBasedModel,
    RandomModel,
    SearchTask,
    SketchPolicy,
    State,
    XGBModel,
)
from ansor.compat.auto_scheduler.search_policy import DEFAULTS
from ansor.errors import CostModelError, ScheduleError
from ansor.te import workloads
from tests.auto_scheduler.declared import check_interpreted


def task_of(name: str, *args: int, target: str = "llvm -threads=4") -> SearchTask:
    return SearchTask(compute_dag=ComputeDAG(getattr(workloads, name)(*args)), target=target, hardware_params=HardwareParams(num_cores=4))


# number of sketches, and the step codes of some of them: TVM's, for a processor with 4 cores
SKETCHES: dict[tuple[object, ...], tuple[int, dict[int, str]]] = {
    ("matmul", 512, 512, 512): (3, {0: "SP SP SP RE", 1: "CHW SP SP SP RE FSP FSP RE CA", 2: "CHW SP SP SP RE FSP FSP RE CA"}),
    ("matmul", 8, 8, 512): (5, {0: "SP RF", 1: "SP RF RE", 2: "SP SP SP RE"}),
    ("double_matmul", 512): (9, {0: "SP SP SP RE SP SP SP RE", 8: "CHW SP SP SP RE FSP FSP RE CA CHW SP SP SP RE FSP FSP RE CA"}),
    ("conv2d_nchw_bn_relu", 1, 56, 56, 512, 512, 3, 1, 1): (3, {0: "CI CI CI " + "SP " * 7 + "RE " + "FSP " * 4 + "RE CA", 2: "CI CI CI " + "SP " * 7 + "RE"}),
    ("max_pool2d", 1, 56, 56, 512, 1): (1, {0: ""}), ("min_nm", 10, 1024): (3, {0: "SP RF", 1: "SP RF RE", 2: ""}),
    ("softmax_nm", 1, 1024): (9, {0: "SP RF SP RF", 2: "SP RF", 8: ""}), ("softmax_abcd", 1, 12, 128, 128): (9, {8: ""}),
    ("zero_rank_reduce", 128): (3, {0: "SP RF", 2: ""}),
}  # fmt: skip


@pytest.mark.parametrize("workload", SKETCHES, ids=lambda workload: str(workload[0]))
def test_sketches_equal_tvms(workload: tuple[object, ...]) -> None:
    name, *args = workload
    count, codes = SKETCHES[workload]
    sketches = SketchPolicy(task_of(str(name), *args)).generate_sketches()  # type: ignore[arg-type]  # numbers
    assert len(sketches) == count
    for number, expected in codes.items():
        assert " ".join(step.code for step in sketches[number].transform_steps) == expected.strip()


FEW: dict[str, int | float | str] = {"sample_init_min_population": 10}


def test_where_tiles_are_computed() -> None:
    sketches = SketchPolicy(task_of("matmul", 512, 512, 512)).generate_sketches()
    assert [one.transform_steps[-1].to_list() for one in sketches[1:]] == [["CA", 2, 3, 1], ["CA", 2, 3, 3]] and sketches[1] != sketches[2]
    assert all("None" in str(one) for one in sketches)


def test_sketches_that_steps_cannot_express_are_counted(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    with caplog.at_level(logging.WARNING, logger="auto_scheduler"):
        assert SketchPolicy(task_of("conv2d_winograd_nhwc", 1, 28, 28, 128, 128, 3, 1, 1)).generate_sketches() == []
    assert "5 of 5 sketches cannot be expressed" in caplog.text
    SketchPolicy(task_of("min_nm", 10, 1024)).generate_sketches(print_for_debug=True)
    assert capsys.readouterr().out.count("sketch ") == 3


def test_custom_sketch_rule() -> None:
    def meet(policy: object, state: State, stage_id: int) -> int:
        assert isinstance(policy, SketchPolicy)
        return PreloadCustomSketchRule.APPLY_AND_SKIP_REST if state.stages[stage_id].name == "C" else PreloadCustomSketchRule.PASS

    def apply(policy: object, state: State, stage_id: int) -> list[list[State | int]]:
        other = state.copy()
        other.split(stage_id, other[stage_id].iters[0], [8, 2])
        return [[state, -1], [other, stage_id - 1]]

    policy = SketchPolicy(task_of("matmul", 512, 512, 512), params=FEW, init_search_callbacks=[PreloadCustomSketchRule(meet, apply)])
    found = [[one.range.extent for one in state["C"].iters if one.range] for state in policy.generate_sketches()]
    assert found == [[512, 512, 512], [32, 8, 2, 512, 512]]
    states = policy.sample_initial_population()
    assert states and all(len(state["C"].iters) >= 3 for state in states)
    wrong = SketchPolicy(task_of("matmul", 8, 8, 8), init_search_callbacks=[PreloadCustomSketchRule(meet, lambda p, s, k: [[k, s]])])
    with pytest.raises(ScheduleError, match=r"return \[state, number of the next stage\]"):
        wrong.generate_sketches()


def test_a_custom_rule_continues_with_earlier_stages() -> None:
    def apply(policy: object, state: State, stage_id: int) -> list[list[State | int]]:
        state.parallel(stage_id, state[stage_id].iters[0])
        return [[state, stage_id - 1]]

    rule = PreloadCustomSketchRule(lambda p, s, k: int(s.stages[k].name == "E"), apply)
    codes = {" ".join(step.code for step in state.transform_steps) for state in
             SketchPolicy(task_of("double_matmul", 64), init_search_callbacks=[rule]).generate_sketches()}  # fmt: skip
    assert "AN SP SP SP RE" in codes and "SP SP SP RE SP SP SP RE" in codes


def test_samples_are_programs() -> None:
    task = task_of("matmul", 10, 10, 4)
    states = SketchPolicy(task, params=FEW).sample_initial_population()
    assert len(states) > 5 and len({str(state) for state in states}) > 5
    for state in states[:8]:
        check_interpreted(task.compute_dag, task.compute_dag.replay(state).sketch)
    again = SketchPolicy(task, params=FEW).sample_initial_population()
    assert [str(state) for state in again] == [str(state) for state in states]


class LengthOfK(PythonBasedModel):
    """Prefers programs whose innermost reduction has two iterations."""

    def predict(self, task: SearchTask, states: Sequence[State]) -> list[float]:
        return [1.0 if _inner_k(state) == 2 else 0.0 for state in states]


def _inner_k(state: State) -> int:
    return next((one.range.extent for stage in state.stages for one in stage.iters if one.name == "k.1" and one.range), 0)


def test_mutate_tile_size() -> None:
    """Evolution finds the length that the model prefers, starting from states without it."""
    task = task_of("matmul", 10, 10, 4)
    policy = SketchPolicy(task, LengthOfK(), {"evolutionary_search_population": 64, "sample_init_min_population": 25})
    start = [state for state in policy.sample_initial_population() if _inner_k(state) != 2]
    found = policy.evolutionary_search(start, 5)
    assert start and any(_inner_k(state) == 2 for state in found) and len(found) <= 5 and _inner_k(found[0]) == 2


def test_evolution_by_features() -> None:
    task = task_of("matmul", 10, 10, 4)
    policy = SketchPolicy(task, RandomModel(), {**FEW, "evolutionary_search_population": 64, "evolutionary_search_num_iters": 1})
    found = policy.evolutionary_search(policy.sample_initial_population(), 6)
    assert len(found) == 6 and all(isinstance(state, State) for state in found)
    nothing = policy.evolutionary_search([], 6)
    assert nothing == []


def test_a_model_has_to_score_every_state() -> None:
    class Wrong(PythonBasedModel):
        def predict(self, task: SearchTask, states: Sequence[State]) -> list[float]:
            return [1.0]

    policy = SketchPolicy(task_of("matmul", 10, 10, 4), Wrong(), FEW)
    with pytest.raises(CostModelError, match="return one score for each"):
        policy.evolutionary_search(policy.sample_initial_population(), 2)


def test_parameters(caplog: pytest.LogCaptureFixture) -> None:
    given: dict[str, int | float | str] = {"eps_greedy": 0.5, "evolutionary_search_population": 99}
    policy = SketchPolicy(task_of("matmul", 16, 16, 16), params=given)
    assert policy.options.epsilon == 0.5 and policy.evolution.population == 99 and set(given) == set(DEFAULTS) == set(SketchPolicy.DEFAULT_PARAMS)
    assert not caplog.records
    SketchPolicy(task_of("matmul", 16, 16, 16), params={"max_vectorize_size": 8})
    assert "max_vectorize_size=8 has no effect on this search" in caplog.text
    with pytest.raises(ScheduleError, match="asked to search with the parameter 'eps'"):
        SketchPolicy(task_of("matmul", 16, 16, 16), params={"eps": 8})
    shallow = SketchPolicy(task_of("matmul", 512, 512, 512), params={"cpu_multi_level_tiling_structure": "SSR"})
    assert [len(state["C"].iters) for state in shallow.generate_sketches()[:1]] == [5]


class MadeUp(ProgramMeasurer):
    """Costs are the lengths of printed states."""

    def measure(self, task: SearchTask, policy: object, inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        return [MeasureResult([float(len(str(inp.state)))], 0, "", 1.0, 1.0) for inp in inputs]


def test_continue_search_one_round() -> None:
    task = task_of("matmul", 16, 16, 16, target="llvm -threads=1")
    policy = SketchPolicy(task, RandomModel())
    measurer = MadeUp(None, None)  # type: ignore[arg-type]  # nothing is built
    first, _ = policy.continue_search_one_round(8, measurer)
    second, results = policy.continue_search_one_round(8, measurer)
    states = [inp.state for inp in (*first, *second)]
    assert 0 < len(first) <= 8 and len(results) == len(second) and len({str(state) for state in states}) == len(states)
    inputs, _ = EmptyPolicy(task).continue_search_one_round(1, measurer)
    assert inputs[0].state == task.compute_dag.init_state
    policy.set_verbose(0)
    assert policy.verbose == 0


@pytest.mark.lightgbm
def test_scores_of_the_models(tmp_path: object) -> None:
    task = task_of("matmul", 32, 32, 32, target="llvm -threads=1")
    states = SketchPolicy(task).sample_initial_population()[:6]
    gpu = task.compute_dag.get_init_state()
    gpu.bind("C", gpu["C"].iters[0], "threadIdx.x")
    scores = XGBModel().predict(task, [*states, gpu, task.compute_dag.get_init_state()])
    assert np.isfinite(scores[:6]).all() and scores[6] == -np.inf and np.isfinite(scores[7])
