"""Winograd's method in whole numbers gives exactly what the direct declaration gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor import te
from ansor.algorithms.base import alternatives_of
from ansor.algorithms.builtin import registered
from ansor.algorithms.convolution import find_convolution
from ansor.algorithms.winograd_integer import F2, F4, METHODS, NAME, Method, most_channels
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.targets.base import parse_target
from ansor.tasks.task import SearchTask
from ansor.te import nn
from ansor.te.tensor import Tensor

BYTES = {"int8": (-128, 127), "uint8": (0, 255)}


def convolution(n: int = 1, size: tuple[int, int] = (16, 16), channels: tuple[int, int] = (16, 16), dtypes: tuple[str, str] = ("int8", "int8"),
                layout: str = "NHWC", padding: int = 1, after: bool = False) -> list[Tensor]:
    """A 3 x 3 convolution of bytes, and what may follow."""
    ci, co = channels
    shapes = {"NHWC": ((n, *size, ci), (3, 3, ci, co)), "NCHW": ((n, ci, *size), (co, ci, 3, 3))}[layout]
    data, weight = te.placeholder(shapes[0], dtypes[0], name="data"), te.placeholder(shapes[1], dtypes[1], name="weight", constant=True)
    sums = nn.conv2d(data, weight, 1, padding, data_layout=layout, out_dtype="int32")
    if not after:
        return [data, weight, sums]
    return [data, weight, te.compute(sums.shape, lambda *at: te.max(sums[at] >> 3, 0) + 7, name="after")]


@given(
    st.integers(1, 2), st.tuples(st.integers(16, 20), st.integers(16, 19)), st.tuples(st.integers(16, 18), st.integers(16, 17)),
    st.tuples(st.sampled_from(sorted(BYTES)), st.sampled_from(sorted(BYTES))), st.sampled_from(["NHWC", "NCHW"]), st.integers(0, 1), st.booleans(),
    st.booleans(),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_equals_the_direct_declaration(n: int, size: tuple[int, int], channels: tuple[int, int], dtypes: tuple[str, str], layout: str, padding: int,
                                       after: bool, extreme: bool) -> None:
    dag, rng = Dag(convolution(n, size, channels, dtypes, layout, padding, after)), np.random.default_rng(sum(size))
    made = alternatives_of(dag, [NAME])
    assert [one.name for one in made] == [one.name for one in METHODS]
    inputs = {}
    for tensor in dag.inputs:
        low, high = BYTES[tensor.dtype]
        values = rng.choice([low, high], tensor.shape) if extreme else rng.integers(low, high + 1, tensor.shape)
        inputs[tensor.name] = values.astype(tensor.dtype)
    for one in made:
        for expected, found in zip(evaluate(dag.outputs, inputs), evaluate(one.dag.outputs, inputs), strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("tensors", [convolution(size=(1, 1)), convolution(channels=(8, 16)), convolution(channels=(16, 8))])
def test_not_where_it_saves_nothing(tensors: list[Tensor]) -> None:
    assert alternatives_of(Dag(tensors), [NAME]) == ()


def test_not_where_results_may_be_too_large() -> None:
    assert [[one.name for one in alternatives_of(Dag(convolution(channels=(ci, 16))), [NAME])] for ci in (227, 228, 3640, 3641)] == [
        [F4.name, F2.name], [F2.name], [F2.name], []
    ]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_all_channels_at_their_worst(method: Method) -> None:
    """As many channels as it takes at most, all numbers at their ends."""
    conv = find_convolution(Dag(convolution(dtypes=("uint8", "uint8"))), "int32")
    assert conv is not None
    dag = Dag(convolution(size=(4, 4), channels=(most_channels(conv, method), 16), dtypes=("uint8", "uint8")))
    inputs = {tensor.name: np.full(tensor.shape, 255, tensor.dtype) for tensor in dag.inputs}
    (made,) = [one for one in alternatives_of(dag, [NAME]) if one.name == method.name]
    np.testing.assert_array_equal(evaluate(made.dag.outputs, inputs)[0], evaluate(dag.outputs, inputs)[0])


def test_targets_that_multiply_many_bytes_at_a_time_do_not_have_it() -> None:
    assert NAME not in {*registered(), *parse_target("cpu").algorithms} and NAME in registered(parse_target("micro").algorithms)
    tasks = [SearchTask(tensors=convolution(), target=target) for target in ("cpu", "micro -board=mps2-an386")]
    assert [[one.name for one in task.alternatives] for task in tasks] == [[], [F4.name, F2.name]]
