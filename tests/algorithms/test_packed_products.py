"""Two products of one multiplication are exactly those that the declaration asks for."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ansor import te
from ansor.algorithms.base import Alternative, alternatives_of
from ansor.algorithms.builtin import registered
from ansor.algorithms.bytes_in_32 import NAME as BYTES_IN_32
from ansor.algorithms.packed_products import HIGH, IN_32, IN_64, LOW
from ansor.algorithms.products import LEAST_REUSE
from ansor.algorithms.three_in_two import NAME
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.targets.base import parse_target
from ansor.tasks.task import SearchTask
from ansor.te import nn
from ansor.te.tensor import Tensor

Arrays = Mapping[str, NDArray[np.generic]]


def dense(rows: int = 1, channels: tuple[int, int] = (8, 6), constant: bool = True, dtypes: tuple[str, str] = ("int8", "int8"),
          turned: bool = False) -> list[Tensor]:
    """[rows, ci] times [co, ci], or times [ci, co], and what may follow."""
    ci, co = channels
    data = te.placeholder((rows, ci), dtypes[0], name="data")
    weight = te.placeholder((ci, co) if turned else (co, ci), dtypes[1], name="weight", constant=constant)
    k = te.reduce_axis((0, ci), name="k")

    def element(i: te.Axis, j: te.Axis) -> te.Expr:
        return te.sum(data[i, k].astype("int32") * (weight[k, j] if turned else weight[j, k]).astype("int32"), axis=k)

    sums = te.compute((rows, co), element, name="sums")
    return [data, weight, te.compute(sums.shape, lambda *at: (sums[at] >> 1) + 7, name="after")]


def convolution(size: tuple[int, int] = (5, 6), channels: tuple[int, int] = (4, 6), taps: int = 3, layout: str = "NHWC") -> list[Tensor]:
    ci, co = channels
    shapes = {"NHWC": ((1, *size, ci), (taps, taps, ci, co)), "NCHW": ((1, ci, *size), (co, ci, taps, taps))}[layout]
    data, weight = te.placeholder(shapes[0], "int8", name="data"), te.placeholder(shapes[1], "int8", name="weight", constant=True)
    return [data, weight, nn.conv2d(data, weight, 2, taps // 2, data_layout=layout, out_dtype="int32")]


def check(tensors: list[Tensor], inputs: Arrays, names: tuple[str, ...] = (IN_32, IN_64)) -> None:
    dag = Dag(tensors)
    made = alternatives_of(dag, [IN_32, IN_64])
    assert tuple(one.name for one in made) == names
    (expected,) = evaluate(dag.outputs, inputs)
    for one in made:
        np.testing.assert_array_equal(evaluate(one.dag.outputs, joined(one, inputs))[0].reshape(expected.shape), expected)


def joined(made: Alternative, inputs: Arrays) -> dict[str, NDArray[np.generic]]:
    return {name: made.transforms[name].apply(array) if name in made.transforms else array for name, array in inputs.items()}


def bytes_of(tensors: list[Tensor], seed: int, extreme: bool) -> dict[str, NDArray[np.generic]]:
    rng, found = np.random.default_rng(seed), {}
    for tensor in Dag(tensors).inputs:
        low, high = np.iinfo(tensor.dtype).min, np.iinfo(tensor.dtype).max
        values = rng.choice([low, high], tensor.shape) if extreme else rng.integers(low, high + 1, tensor.shape)
        found[tensor.name] = values.astype(tensor.dtype)
    return found


@given(st.integers(1, 3), st.integers(1, 20), st.integers(1, 8), st.booleans(), st.booleans(), st.integers(0, 999))
@settings(max_examples=40, deadline=None)
def test_a_dense_layer_equals_its_declaration(rows: int, ci: int, co: int, turned: bool, extreme: bool, seed: int) -> None:
    tensors = dense(rows, (2 * ci, 2 * co), turned=turned)
    check(tensors, bytes_of(tensors, seed, extreme))


@given(st.tuples(st.integers(3, 6), st.integers(3, 6)), st.sampled_from([1, 3]), st.sampled_from(["NHWC", "NCHW"]), st.booleans(), st.integers(0, 999))
@settings(max_examples=20, deadline=None)
def test_a_convolution_equals_its_declaration(size: tuple[int, int], taps: int, layout: str, extreme: bool, seed: int) -> None:
    tensors = convolution(size, (4, 6), taps, layout)
    check(tensors, bytes_of(tensors, seed, extreme))


@given(st.integers(LEAST_REUSE, 20), st.integers(1, 6), st.integers(1, 5), st.booleans(), st.integers(0, 999))
@settings(max_examples=20, deadline=None)
def test_weights_that_are_no_constants_are_packed_by_a_stage(rows: int, ci: int, co: int, extreme: bool, seed: int) -> None:
    tensors = dense(rows, (2 * ci, 2 * co), constant=False)
    check(tensors, bytes_of(tensors, seed, extreme))


def test_every_pair_of_sums_of_two_products() -> None:
    """Both sums at all combinations of what a product of bytes can be at its ends, and of one in between, next to one another."""
    ends = np.array(np.meshgrid(*[[-128, -127, -1, 0, 1, 127]] * 4)).reshape(4, -1)
    data, weight = ends[:2].T.astype(np.int8), np.unique(ends[2:].T, axis=0).astype(np.int8)
    data = np.unique(data, axis=0)
    pairs = np.array([(a, b) for a in range(len(weight)) for b in range(len(weight))]).reshape(-1)
    tensors = dense(len(data), (2, len(pairs)))
    check(tensors, {"data": data, "weight": weight[pairs]})


def test_sums_are_apart_whatever_the_bytes() -> None:
    least, most = 2 * -128 * 127, 2 * 128 * 128
    assert least + LOW >= 0 and most + LOW < 1 << 16 and least + HIGH >= -(1 << 15) and most + HIGH < 1 << 15


def test_long_sums_wrap_as_declared() -> None:
    """Registers of 64 bits keep sums apart that 32 bits have no room for only as long as these have it."""
    for ci, names in ((131070, (IN_32, IN_64)), (131072, (IN_32,)), (262144, (IN_32,))):
        tensors = dense(1, (ci, 2))
        check(tensors, {one.name: np.full(one.shape, -128, np.int8) for one in Dag(tensors).inputs}, names)


@pytest.mark.parametrize(
    ("tensors", "names"),
    [
        (dense(1, (8, 5)), ()),
        (dense(1, (7, 6)), (IN_64,)),
        (dense(1, (8, 6), dtypes=("uint8", "int8")), (IN_64,)),
        (dense(LEAST_REUSE - 1, (8, 6), constant=False), ()),
        (dense(1, (8, 6), dtypes=("int16", "int8")), ()),
    ],
    ids=["odd outputs", "odd inputs", "uint8", "few rows", "int16"],
)
def test_where_there_is_no_room_for_two(tensors: list[Tensor], names: tuple[str, ...]) -> None:
    assert tuple(one.name for one in alternatives_of(Dag(tensors), [IN_32, IN_64])) == names


def test_depthwise_convolutions_have_no_outputs_that_share_data() -> None:
    data, weight = te.placeholder((1, 6, 6, 8), "int8", name="data"), te.placeholder((3, 3, 1, 8), "int8", name="weight", constant=True)
    sums = nn.conv2d(data, weight, 1, 1, groups=8, data_layout="NHWC", out_dtype="int32")
    assert alternatives_of(Dag([data, weight, sums]), [IN_32, IN_64]) == ()


def test_the_outputs_of_a_word_are_a_dimension_of_their_own() -> None:
    (made,) = alternatives_of(Dag(dense(1, (8, 6))), [IN_32])
    assert [one.shape for one in made.dag.outputs] == [(1, 3, 2)]
    assert not any(op in str(stage.compute.body) for stage in made.dag.stages if stage.compute is not None for op in ("//", "%"))


def test_only_risc_v_without_vectors_has_it() -> None:
    names = {BYTES_IN_32, IN_64}
    assert not names & {*registered(), *parse_target("cpu").algorithms}
    found = {board: set(parse_target(f"micro -board={board}").algorithms) & names for board in
             ("qemu-riscv32", "qemu-riscv64", "esp32c3", "spike-rv64", "spike-rvv128", "mps2-an385", "mps2-an386", "mps3-an547")}  # fmt: skip
    assert found == {"qemu-riscv32": {BYTES_IN_32}, "qemu-riscv64": {IN_64}, "esp32c3": {BYTES_IN_32}, "spike-rv64": {IN_64}, "spike-rvv128": set(),
                     "mps2-an385": set(), "mps2-an386": set(), "mps3-an547": set()}  # fmt: skip


@pytest.mark.parametrize(("tensors", "name"), [(dense(), NAME), (dense(16, (8, 6), constant=False), IN_32), (dense(1, (262, 6)), IN_32)])
def test_three_sums_in_two_registers_come_first(tensors: list[Tensor], name: str) -> None:
    task = SearchTask(tensors=tensors, target="micro -board=qemu-riscv32")
    assert [one.name for one in task.alternatives] == [name] and {space.algorithm for space in task.spaces} == {"", name}


def test_a_sketch_of_a_task_that_was_declared_anew_has_its_constants_joined() -> None:
    first, second = (SearchTask(tensors=dense(1, (262, 64)), target="micro -board=qemu-riscv32") for _ in range(2))
    sketch = next(space.sketch for space in first.spaces if space.algorithm == IN_32)
    (weights,) = [one for one in second.source(sketch, [0] * len(sketch.choices)).arguments if one.role == "constant"]
    assert weights.dtype == "int8" and weights.physical_dtype == "int64" and weights.shape == (64, 262)
