"""Running the programs of states."""

import numpy as np
import pytest

from ansor import te
from ansor.auto_scheduler import ComputeDAG, LayoutRewriteOption, build, lower
from ansor.errors import ScheduleError
from ansor.manual.program import source_of
from ansor.targets.base import parse_target
from tests.auto_scheduler.declared import check_interpreted, matmul_dag, tiled_matmul

TARGET = parse_target("cpu -threads=1")


@pytest.mark.compiler
def test_a_state_runs() -> None:
    dag, state = tiled_matmul()
    program, args = dag.apply_steps_from_state(state)
    kernel = build(program, args, "llvm -threads=1")
    a, b = (np.random.default_rng(k).random((512, 512), "float32") for k in range(2))
    found = kernel(a, b)
    assert isinstance(found, np.ndarray) and np.allclose(found, a @ b, rtol=1e-4) and "for C_i_0 in 8" in kernel.schedule
    assert str(lower(program, args)) == kernel.schedule


def test_arguments_must_be_the_declarations() -> None:
    dag, state = tiled_matmul()
    program, args = dag.apply_steps_from_state(state)
    with pytest.raises(ScheduleError, match="pass those"):
        lower(program, args[:2])


def test_private_buffers_must_fit_the_stack() -> None:
    x = te.placeholder((4, 1024, 1024), name="x")
    one = te.compute(x.shape, lambda i, j, k: x[i, j, k] + 1.0, name="one")
    dag = ComputeDAG([x, te.compute(x.shape, lambda i, j, k: one[i, k, j] * 2.0, name="two")])
    state = dag.get_init_state()
    state.compute_at("one", "two", state["two"].iters[0])
    program, _ = dag.apply_steps_from_state(state)
    with pytest.raises(ScheduleError, match="4194304 bytes for stages computed at loops"):
        source_of(program, TARGET)


@pytest.mark.parametrize("option, constant, step", [
    (LayoutRewriteOption.NO_REWRITE, False, None), (LayoutRewriteOption.INSERT_TRANSFORM_STAGE, False, "PackInside"),
    (LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED, True, "Pack"), (LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED, False, "PackInside"),
])  # fmt: skip
def test_operands_with_a_free_layout_are_packed(option: LayoutRewriteOption, constant: bool, step: str | None) -> None:
    a, b = te.placeholder((8, 4), name="A"), te.placeholder((4, 8), name="B", constant=constant)
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute((8, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C", attrs={"layout_free_placeholders": [b]})
    dag = ComputeDAG([a, b, c])
    state = dag.get_init_state()
    j0, j1 = state.split(c, state[c].iters[1], [4])
    i, _, _, r = state[c].iters
    state.reorder(c, [j0, i, r, j1])
    program = dag.replay(state, option).sketch
    assert [type(one).__name__ for one in program.steps if "Pack" in type(one).__name__] == ([step] if step else [])
    check_interpreted(dag, program)


def test_corner_cases_of_packing() -> None:
    """One element, all loops fused; and an attribute that does not name a placeholder."""
    a, b = te.placeholder((1, 1), name="A"), te.placeholder((1, 1), name="B")
    k = te.reduce_axis((0, 1), name="k")
    c = te.compute((1, 1), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C", attrs={"layout_free_placeholders": [b]})
    dag = ComputeDAG([a, b, c])
    state = dag.get_init_state()
    state.fuse(c, state[c].iters[:2])
    state.fuse(c, state[c].iters)
    check_interpreted(dag, dag.replay(state, LayoutRewriteOption.INSERT_TRANSFORM_STAGE).sketch)
    wrong = te.compute((1, 1), lambda i, j: c[i, j], name="D", attrs={"layout_free_placeholders": [c]})
    with pytest.raises(ScheduleError, match="which is not a placeholder that it reads"):
        ComputeDAG([a, b, wrong]).replay(ComputeDAG([a, b, wrong]).init_state.state_object, LayoutRewriteOption.INSERT_TRANSFORM_STAGE)


def test_open_lengths_are_refused() -> None:
    dag, _, _, c = matmul_dag(8, 8, 8)
    state = dag.get_init_state()
    state.split(c, state[c].iters[0], [None])
    with pytest.raises(ScheduleError, match="open lengths"):
        lower(*dag.apply_steps_from_state(state))
