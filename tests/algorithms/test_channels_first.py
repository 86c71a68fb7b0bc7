"""Data with channels first give what the declaration gives, and are offered where rows fill vectors better than output channels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ansor import te
from ansor.algorithms.base import alternatives_of
from ansor.algorithms.channels_first import NAME
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.measure.verify import difference
from ansor.tasks.task import SearchTask
from ansor.te import nn, workloads
from ansor.te.tensor import Tensor
from tests.declarations import Array, Case, seeded_draw
from tests.programs import Bench, interpreted, programs_of, sanitized_problems, sanitizer_compiler

EPILOGUES = ("none", "bias_tanh", "two outputs")


def convolution(size: tuple[int, int] = (17, 18), ci: int = 4, co: int = 3, taps: int = 3, padding: int = 1, epilogue: str = "bias_tanh", n: int = 1,
                dtype: str = "float32") -> list[Tensor]:
    data, weight = te.placeholder((n, *size, ci), dtype, "data"), te.placeholder((taps, taps, ci, co), dtype, "weight", constant=True)
    return followed([data, weight], nn.conv2d(data, weight, 1, padding, data_layout="NHWC"), epilogue)


def transposed(size: tuple[int, int] = (16, 17), ci: int = 4, co: int = 3, taps: int = 4, padding: int = 1, epilogue: str = "bias_tanh", n: int = 1,
               stride: int = 2) -> list[Tensor]:
    data, weight = te.placeholder((n, *size, ci), name="data"), te.placeholder((taps, taps, ci, co), name="weight", constant=True)
    return followed([data, weight], nn.conv2d_transpose(data, weight, stride, padding, data_layout="NHWC"), epilogue)


def followed(inputs: list[Tensor], result: Tensor, epilogue: str) -> list[Tensor]:
    if epilogue == "none":
        return [*inputs, result]
    if epilogue == "two outputs":
        return [*inputs, result, nn.tanh(result)]
    bias = te.placeholder(result.shape[-1:], result.dtype, "bias", constant=True)
    return [*inputs, bias, nn.tanh(nn.bias_add(result, bias, 3))]


def inputs_of(dag: Dag) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {tensor.name: rng.uniform(-1, 1, tensor.shape).astype(np.float32) for tensor in dag.inputs}


def turned(tensors: list[Tensor]) -> Case:
    """The alternative, with what the declaration gives in double precision."""
    dag = Dag(tensors)
    (made,) = alternatives_of(dag, [NAME])
    inputs = inputs_of(dag)
    expected = evaluate(dag.outputs, inputs, "float64")
    return Case(NAME, made.dag, inputs, {tensor.name: value for tensor, value in zip(dag.outputs, expected, strict=True)})


@given(
    st.sampled_from([convolution, transposed]), st.tuples(st.integers(4, 7), st.integers(19, 21)), st.integers(1, 5), st.integers(2, 8), st.integers(3, 4),
    st.integers(0, 2), st.sampled_from(EPILOGUES), st.integers(1, 2),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_equals_the_declaration(declare: Callable[..., list[Tensor]], size: tuple[int, int], ci: int, co: int, taps: int, padding: int, epilogue: str,
                                n: int) -> None:
    tensors = declare(size, ci, co, taps, padding, epilogue, n)
    assume(alternatives_of(Dag(tensors), [NAME]))
    case = turned(tensors)
    for value, (name, expected) in zip(evaluate(case.dag.outputs, case.inputs), case.expected.items(), strict=True):
        assert difference(name, value, expected, reduction=Dag(tensors).reduce_length) == ""


@pytest.mark.parametrize("tensors", [convolution((5, 16), 3), transposed((3, 16), 2), convolution((4, 17), 2, epilogue="two outputs")])
def test_every_sketch_computes_it(bench: Bench, tensors: list[Tensor]) -> None:
    chosen = programs_of(seeded_draw(1), turned(tensors))[::3][:8]
    assert [interpreted(program, 150_000) for program in chosen[:3]] == [""] * 3
    assert bench.problems(chosen) == [""] * len(chosen)


@pytest.mark.compiler
@pytest.mark.parametrize("tensors", [convolution((5, 16), 3), transposed((3, 16), 2)])
def test_programs_stay_within_their_arrays(tensors: list[Tensor], tmp_path: Path) -> None:
    gcc = sanitizer_compiler()
    if not gcc:
        pytest.skip("no gcc with sanitizers")
    chosen = programs_of(seeded_draw(2), turned(tensors))[::5][:4]
    assert sanitized_problems(chosen, tmp_path, gcc) == [""] * len(chosen)


@pytest.mark.parametrize("tensors", [convolution(), convolution(taps=5, co=1), transposed(), transposed(co=8), convolution(taps=1, padding=0, co=8)])
def test_offered_where_rows_fill_vectors_better(tensors: list[Tensor]) -> None:
    assert [one.name for one in alternatives_of(Dag(tensors), [NAME])] == [NAME]


@pytest.mark.parametrize(
    "tensors",
    [
        convolution(co=9),
        convolution((17, 15)),  # a short row
        convolution(taps=1, padding=0),  # three products of each element of the data
        convolution(dtype="int32", epilogue="none"),
        workloads.conv2d_nchw_bn_relu(1, 18, 18, 4, 3, 3, 1, 1), workloads.softmax_nm(32, 4), workloads.depthwise_conv2d(1, 18, 18, 4, 3),
    ],
)  # fmt: skip
def test_not_offered_elsewhere(tensors: list[Tensor]) -> None:
    assert not list(alternatives_of(Dag(tensors), [NAME]))


def test_searched_on_processors_with_vectors_alone() -> None:
    def algorithms(target: str) -> set[str]:
        return {space.algorithm for space in SearchTask(tensors=convolution(), target=target).spaces}

    assert NAME in algorithms("cpu -threads=1")
    assert NAME not in algorithms("micro -board=qemu-riscv32")
