"""Three sums in two registers are exactly those that the declaration asks for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor import te
from ansor.algorithms.base import alternatives_of
from ansor.algorithms.three_in_two import BLOCK, MOST_BLOCKS, NAME
from ansor.ir import access, interpreter
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from tests.algorithms.test_packed_products import Arrays, bytes_of, convolution, dense, joined


def check(tensors: list[Tensor], inputs: Arrays) -> None:
    dag = Dag(tensors)
    (made,) = alternatives_of(dag, [NAME])
    (expected,) = evaluate(dag.outputs, inputs)
    np.testing.assert_array_equal(evaluate(made.dag.outputs, joined(made, inputs))[0].reshape(expected.shape), expected)


@given(st.integers(1, 3), st.sampled_from([4, 7, 64, 65, 66, 128, 640]), st.sampled_from([3, 4, 5, 8, 12, 32, 80, 128]), st.booleans(), st.booleans(),
       st.integers(0, 999))  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_a_dense_layer_equals_its_declaration(rows: int, ci: int, co: int, turned: bool, extreme: bool, seed: int) -> None:
    tensors = dense(rows, (ci, co), turned=turned)
    check(tensors, bytes_of(tensors, seed, extreme))


@given(st.tuples(st.integers(3, 6), st.integers(3, 6)), st.sampled_from([1, 3]), st.sampled_from([(4, 6), (16, 16), (32, 5)]),
       st.sampled_from(["NHWC", "NCHW"]), st.booleans(), st.integers(0, 999))  # fmt: skip
@settings(max_examples=20, deadline=None)
def test_a_convolution_equals_its_declaration(size: tuple[int, int], taps: int, channels: tuple[int, int], layout: str, extreme: bool, seed: int) -> None:
    tensors = convolution(size, channels, taps, layout)
    check(tensors, bytes_of(tensors, seed, extreme))


def test_sums_at_both_ends_of_their_range() -> None:
    """All products of three whole blocks the least, or the greatest, that they can be, next to one another in every way."""
    ends = np.array(np.meshgrid(*[[-128, 127]] * 3)).reshape(3, -1)
    for data in (-128, 127):
        tensors = dense(1, (BLOCK, ends.size))
        weight = np.repeat(ends.T.reshape(-1, 1), BLOCK, axis=1).astype(np.int8)
        check(tensors, {"data": np.full((1, BLOCK), data, np.int8), "weight": weight})


@pytest.mark.parametrize(
    "tensors",
    [dense(1, (8, 2)), dense(1, (3, 6)), dense(1, (BLOCK * MOST_BLOCKS + BLOCK, 6)), dense(1, (131, 6)), dense(16, (8, 6), constant=False),
     dense(1, (8, 6), dtypes=("uint8", "int8"))],
    ids=["two outputs", "short", "long", "a prime number of products", "no constants", "uint8"],
)  # fmt: skip
def test_where_it_is_not_tried(tensors: list[Tensor]) -> None:
    assert alternatives_of(Dag(tensors), [NAME]) == ()


def test_depthwise_convolutions_have_no_outputs_that_share_data() -> None:
    data, weight = te.placeholder((1, 6, 6, 8), "int8", name="data"), te.placeholder((3, 3, 8), "int8", name="weight", constant=True)
    ky, kx = te.reduce_axis((0, 3), name="ky"), te.reduce_axis((0, 3), name="kx")

    def one(n: te.Axis, y: te.Axis, x: te.Axis, c: te.Axis) -> te.Expr:
        return te.sum(data[n, y + ky, x + kx, c].astype("int32") * weight[ky, kx, c].astype("int32"), axis=[ky, kx])

    assert alternatives_of(Dag([data, weight, te.compute((1, 4, 4, 8), one, name="sums")]), [NAME]) == ()


def test_chunks_of_outputs_are_a_dimension_of_their_own() -> None:
    (made,) = alternatives_of(Dag(dense(1, (8, 128))), [NAME])
    assert [one.shape for one in made.dag.outputs] == [(1, 2, 64)]
    assert [stage.shape for stage in made.dag.stages if access.SPLIT_BEHIND in stage.attrs] == [(1, 2, 44)]


def test_a_task_has_its_sums_inside_the_loops_of_the_last_stage() -> None:
    """Equal workspaces of no bytes: sums are local, whatever the numbers of the sketch."""
    task = SearchTask(tensors=dense(6, (64, 128)), target="micro -board=qemu-riscv32")
    spaces = [space.sketch for space in task.spaces if space.algorithm == NAME]
    assert spaces and NAME in {one.name for one in task.alternatives}
    for sketch in spaces:
        assert {stage.name for stage in sketch.state.stages if type(stage.placement).__name__ == "At"} >= {"packed_sums", "split_sums"}
        (weights,) = [one for one in task.source(sketch, [0] * len(sketch.choices)).arguments if one.role == "constant"]
        assert weights.dtype == "int8" and weights.physical_dtype == "int32" and weights.shape == (128, 64)


def test_bias_is_read_once_for_all_places_of_a_tile() -> None:
    data, weight, sums = convolution((4, 4), (16, 16), 1, "NHWC")
    bias = te.placeholder((16,), "int32", name="bias", constant=True)
    after = te.compute(sums.shape, lambda n, y, x, c: sums[n, y, x, c] + bias[c], name="after")
    task = SearchTask(tensors=[data, weight, bias, after], target="micro -board=qemu-riscv32")
    found = {space.sketch.state["after"].loops for space in task.spaces if space.algorithm == NAME}
    assert {loops[loops.index("c") :] for loops in found} == {("c", "n_1", "y_1", "x_1"), ("c", "n_2", "y_2", "x_2")}


@pytest.mark.parametrize("tensors", [dense(3, (6, 32)), dense(1, (130, 34)), convolution((3, 4), (4, 5), 3)], ids=["chunks", "blocks", "convolution"])
def test_every_program_computes_what_is_declared(tensors: list[Tensor]) -> None:
    task, inputs, rng = SearchTask(tensors=tensors, target="micro -board=qemu-riscv32"), bytes_of(tensors, 1, True), np.random.default_rng(0)
    (made,) = alternatives_of(Dag(tensors), [NAME])
    (expected,) = evaluate(Dag(tensors).outputs, inputs)
    for sketch in (space.sketch for space in task.spaces if space.algorithm == NAME):
        for _ in range(3):
            row = [int(rng.integers(choice.size)) for choice in sketch.choices]
            found = interpreter.run(sketch.lower_row(row), joined(made, inputs))
            np.testing.assert_array_equal(found[tensors[-1].name].reshape(expected.shape), expected, err_msg=f"{sketch} {row}")
