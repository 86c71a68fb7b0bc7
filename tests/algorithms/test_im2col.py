"""Columns hold the windows, and the sum over them is the convolution; where nothing is gained there are none."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.algorithms.base import alternatives_of
from ansor.algorithms.im2col import im2col
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.te import nn
from ansor.te.tensor import Tensor
from tests.declarations import Case, seeded_draw
from tests.programs import Bench, programs_of


def convolution(layout: str, size: int, taps: int, stride: int, *, dilation: int = 1, groups: int = 1, ci: int = 4, co: int = 16, relu: bool = False) -> Dag:
    rank = len(layout) - 2
    spatial = (size,) * rank
    last = layout.endswith("C")
    data = te.placeholder((1, *spatial, ci) if last else (1, ci, *spatial), name="data")
    kernel = te.placeholder((*(taps,) * rank, ci // groups, co) if last else (co, ci // groups, *(taps,) * rank), name="kernel", constant=True)
    out = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}[rank](data, kernel, stride, taps // 2, dilation, groups, data_layout=layout)
    return Dag([data, kernel, nn.relu(out) if relu else out])


def columns(dag: Dag) -> Tensor | None:
    found = alternatives_of(dag, (im2col,))
    return next(stage for stage in found[0].dag.stages if stage.name == "columns") if found else None


@pytest.mark.parametrize(
    ("dag", "shape"),
    [
        (convolution("NCHW", 9, 3, 2), (1, 4, 3, 3, 5, 5)),
        (convolution("NHWC", 9, 3, 2), (1, 5, 5, 3, 3, 4)),
        (convolution("NCW", 12, 3, 3), (1, 4, 3, 4)),
        (convolution("NCDHW", 5, 3, 2), (1, 4, 3, 3, 3, 3, 3, 3)),
        (convolution("NCHW", 9, 3, 2, dilation=2), (1, 4, 3, 3, 4, 4)),
    ],
)
def test_what_lies_side_by_side_in_the_data_does_so_in_the_columns(dag: Dag, shape: tuple[int, ...]) -> None:
    found = columns(dag)
    assert found is not None and found.shape == shape


@pytest.mark.parametrize("dag", [convolution("NCHW", 9, 3, 1), convolution("NCHW", 9, 3, 2, co=8), convolution("NCHW", 9, 3, 2, groups=2)])
def test_no_columns_where_they_would_cost_more_than_they_give(dag: Dag) -> None:
    assert columns(dag) is None


def test_a_reduction_may_start_anywhere() -> None:
    x, kernel = te.placeholder((4, 12), name="x"), te.placeholder((16, 4, 5), name="kernel")
    c, r = te.reduce_axis((0, 4), name="c"), te.reduce_axis((1, 4), name="r")
    dag = Dag([x, kernel, te.compute((16, 4), lambda k, i: te.sum(x[c, 2 * i + r] * kernel[k, c, r], axis=[c, r]), name="out")])
    (alternative,) = alternatives_of(dag, (im2col,))
    rng = np.random.default_rng(0)
    inputs: dict[str, NDArray[np.generic]] = {tensor.name: rng.integers(-4, 5, tensor.shape).astype(np.float32) for tensor in dag.inputs}
    assert np.array_equal(evaluate(alternative.dag.outputs, inputs)[0], evaluate(dag.outputs, inputs)[0])


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "NWC", "NCDHW"])
@pytest.mark.parametrize("relu", [False, True])
def test_programs_over_columns_are_right(bench: Bench, layout: str, relu: bool) -> None:
    dag = convolution(layout, 5, 3, 2, ci=3, relu=relu)
    (alternative,) = alternatives_of(dag, (im2col,))
    rng = np.random.default_rng(0)
    inputs: dict[str, NDArray[np.generic]] = {tensor.name: rng.uniform(-1, 1, tensor.shape).astype(np.float32) for tensor in dag.inputs}
    expected = evaluate(dag.outputs, inputs, "float64")
    found = evaluate(alternative.dag.outputs, inputs, "float64")
    for want, got in zip(expected, found, strict=True):
        assert np.allclose(want, got, rtol=1e-12, atol=1e-12)
    case = Case("im2col", alternative.dag, inputs, {tensor.name: value for tensor, value in zip(dag.outputs, expected, strict=True)})
    chosen = programs_of(seeded_draw(len(layout)), case)[:10]
    assert bench.problems(chosen) == [""] * len(chosen)
