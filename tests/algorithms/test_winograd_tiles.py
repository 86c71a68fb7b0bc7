"""Winograd's method a few tiles at a time gives exactly what the direct declaration gives, in local buffers alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor import te
from ansor.algorithms.base import alternatives_of
from ansor.algorithms.builtin import registered
from ansor.algorithms.winograd_tiles import NAME
from ansor.ir import access, interpreter
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.targets.base import parse_target
from ansor.tasks.task import SearchTask
from ansor.te import nn
from ansor.te.tensor import Tensor
from tests.algorithms.test_packed_products import Arrays, joined
from tests.algorithms.test_winograd_integer import BYTES, convolution

NAMES = [f"{NAME}_f4", f"{NAME}_f2"]


def bytes_of(dag: Dag, seed: int, extreme: bool) -> Arrays:
    rng = np.random.default_rng(seed)
    return {
        one.name: (rng.choice(BYTES[one.dtype], one.shape) if extreme else rng.integers(*BYTES[one.dtype], one.shape, endpoint=True)).astype(one.dtype)
        for one in dag.inputs
    }


@given(
    st.integers(1, 2), st.tuples(st.sampled_from([4, 8, 12]), st.sampled_from([4, 16])), st.tuples(st.integers(16, 18), st.integers(16, 17)),
    st.tuples(st.sampled_from(sorted(BYTES)), st.sampled_from(sorted(BYTES))), st.sampled_from(["NHWC", "NCHW"]), st.booleans(), st.booleans(),
    st.integers(0, 999),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_equals_the_direct_declaration(n: int, size: tuple[int, int], channels: tuple[int, int], dtypes: tuple[str, str], layout: str, after: bool,
                                       extreme: bool, seed: int) -> None:
    dag = Dag(convolution(n, size, channels, dtypes, layout, 1, after))
    inputs = bytes_of(dag, seed, extreme)
    (expected,) = evaluate(dag.outputs, inputs)
    made = alternatives_of(dag, [NAME])
    assert [one.name for one in made] == NAMES
    for one in made:
        np.testing.assert_array_equal(evaluate(one.dag.outputs, joined(one, inputs))[0].reshape(expected.shape), expected)


def test_tiles_are_whole() -> None:
    sizes = [(8, 8), (6, 8), (8, 7), (1, 1)]
    assert [[one.name for one in alternatives_of(Dag(convolution(size=size)), [NAME])] for size in sizes] == [NAMES, NAMES[1:], [], []]


def test_where_it_is_not_tried() -> None:
    data, weight = te.placeholder((1, 8, 8, 16), "int8", name="data"), te.placeholder((3, 3, 16, 16), "int8", name="weight")
    given_weights = [data, weight, nn.conv2d(data, weight, 1, 1, data_layout="NHWC", out_dtype="int32")]
    for tensors in (given_weights, convolution(channels=(8, 16)), convolution(channels=(16, 8)), convolution(channels=(3641, 16))):
        assert alternatives_of(Dag(tensors), [NAME]) == ()


def test_targets_that_multiply_one_register_at_a_time_have_it() -> None:
    assert NAME not in {*registered(), *parse_target("cpu").algorithms, *parse_target("micro -board=mps2-an386").algorithms}
    assert all(NAME in parse_target(f"micro -board=spike-rv{bits}").algorithms for bits in (32, 64))


def test_everything_is_inside_the_loops_of_the_last_stage() -> None:
    """No workspace, whatever the numbers of the sketch; kernels have 16 bits."""
    task = SearchTask(tensors=convolution(size=(8, 8), after=True), target="micro -board=qemu-riscv32")
    spaces = [space.sketch for space in task.spaces if space.algorithm in NAMES]
    assert spaces
    for sketch in spaces:
        placed = {stage.name for stage in sketch.state.stages if type(stage.placement).__name__ == "At"}
        assert placed >= {stage.name for stage in sketch.dag.stages if access.WRITTEN_OUT in stage.attrs} | {"winograd_product"}
        (weights,) = [one for one in task.source(sketch, [0] * len(sketch.choices)).arguments if one.role == "constant"]
        assert weights.dtype == "int8" and weights.physical_dtype == "int16" and weights.shape == (3, 3, 16, 16)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_data_are_transformed_outside_the_loop_over_output_channels(layout: str) -> None:
    task = SearchTask(tensors=convolution(size=(8, 8), layout=layout, after=True), target="micro -board=qemu-riscv32")
    state = next(space.sketch for space in task.spaces if space.algorithm == NAMES[0]).state
    last = state[state.dag.outputs[0].name]
    places = [last.loops.index(state[name].placement.loop) for name in ("winograd_data", "winograd_product")]  # type: ignore[union-attr]
    assert places[0] + 1 == places[1]


@pytest.mark.parametrize("tensors", [convolution(size=(4, 4), after=True), convolution(2, (2, 4), layout="NCHW")], ids=["NHWC", "NCHW"])
def test_every_program_computes_what_is_declared(tensors: list[Tensor]) -> None:
    task, rng = SearchTask(tensors=tensors, target="micro -board=qemu-riscv32"), np.random.default_rng(0)
    inputs = bytes_of(Dag(tensors), 1, True)
    (expected,) = evaluate(Dag(tensors).outputs, inputs)
    made = {one.name: one for one in alternatives_of(Dag(tensors), [NAME])}
    for space in (space for space in task.spaces if space.algorithm in made):
        row = [int(rng.integers(choice.size)) for choice in space.sketch.choices]
        found = interpreter.run(space.sketch.lower_row(row), joined(made[space.algorithm], inputs))
        np.testing.assert_array_equal(found[tensors[-1].name].reshape(expected.shape), expected, err_msg=f"{space.sketch} {row}")
