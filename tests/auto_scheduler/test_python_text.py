"""The steps of a state as Python: running the text on our schedules gives the same loops."""

from __future__ import annotations

import re

import pytest

import ansor
from ansor import te
from ansor.compat.auto_scheduler.compute_dag import ComputeDAG
from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.stages import clean
from ansor.compat.auto_scheduler.steps import CacheReadStep, FuseStep, SplitStep
from ansor.errors import ScheduleError
from ansor.ir.simplify import simplified
from ansor.schedule.sketch import Sketch
from ansor.te import workloads
from tests.auto_scheduler.declared import SMALL, check_interpreted, tiled_matmul
from tests.auto_scheduler.random_states import random_state
from tests.declarations import seeded_draw


def run(dag: ComputeDAG, state: State) -> Sketch:
    """The result of running the text."""
    s = ansor.create_schedule([one for one in dag.tensors if one.compute])
    names: dict[str, object] = {clean(op.name): op for op in dag.ops}
    exec(dag.print_python_code_from_state(state), {**names, "s": s, "te": te})
    return s.sketch(dag.tensors)


def loops(program: Sketch) -> str:
    """The loops as text, numbered in order: a split in three is one step or two."""
    text = str(simplified(program.lower_row(())))
    numbers = {name: f"L{place}" for place, name in enumerate(dict.fromkeys(re.findall(r"for (\w+) in", text)))}
    return re.sub(r"\w+", lambda word: numbers.get(word[0], word[0]), text)


def same(dag: ComputeDAG, state: State) -> None:
    """Whether both have the same loops. If some are fused, ours stay nested, so compare the numbers."""
    made = run(dag, state)
    if any(isinstance(step, FuseStep) for step in state.transform_steps):
        check_interpreted(dag, made, state)
    else:
        assert loops(made) == loops(dag.apply_steps_from_state(state)[0])


def test_a_tiled_product() -> None:
    dag, state = tiled_matmul()
    assert len(run(dag, state).lower_row(()).body) == 1
    unfused = dag.get_init_state().apply(state.transform_steps[:9])
    assert "s[C_local].compute_at(s[C], C_j_o_i)" in dag.print_python_code_from_state(unfused)
    same(dag, unfused)


def test_partial_results() -> None:
    dag = ComputeDAG(workloads.matmul(8, 8, 64))
    state = dag.get_init_state()
    outer, inner = state.split("C", state["C"].iters[2], [16])
    state.rfactor("C", inner, 2)
    text = dag.print_python_code_from_state(state)
    assert "C_rf = s.rfactor(C, C_k_i, 2)\n" in text and "C_repl = C\n" in text and " = tuple(s[C_repl].op.axis) + tuple(s[C_repl].op.reduce_axis)\n" in text
    same(dag, state)


def test_splits_from_the_outside() -> None:
    dag = ComputeDAG(workloads.matmul(8, 8, 64))
    state = dag.get_init_state()
    state.split("C", state["C"].iters[2], [4, 2], inner_to_outer=False)
    assert [one.range.extent for one in dag.infer_bound_from_state(state)["C"].iters if one.range] == [8, 8, 4, 2, 8]
    assert "C_k_o, C_k_i = s[C].split(C_k, nparts=4)\nC_k_i_o, C_k_i_i = s[C].split(C_k_i, nparts=2)\n" in dag.print_python_code_from_state(state)
    same(dag, state)


@pytest.mark.parametrize("name", SMALL)
def test_random_states(name: str) -> None:
    dag, made = ComputeDAG(SMALL[name]()), 0
    for seed in range(24):
        state = random_state(dag, seeded_draw(500 + seed), 8)
        if dag.replay(state).notes or any(isinstance(step, CacheReadStep) and step.scope_name == "shared" for step in state.transform_steps):
            continue
        if any(isinstance(step, SplitStep) and (step.extent or 1) % (step.lengths[0] or 1) for step in state.transform_steps):
            continue
        try:
            same(dag, state)
            made += 1
        except ScheduleError as error:
            assert "asked to" in str(error), error
    assert made >= 3
