"""Dimensions that every stage goes through together are one; all others stay, and nothing else is computed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import ansor
from ansor import te
from ansor.algorithms.base import alternatives_of
from ansor.algorithms.flat import flat
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.te import nn
from ansor.te.tensor import Tensor
from tests.declarations import Case, seeded_draw
from tests.programs import Bench, programs_of


def pointwise(size: int = 5, *, padded: int = 0, layout: str = "NCHW", constant: bool = False) -> list[Tensor]:
    """A 1x1 convolution with a bias and an addition."""
    last = layout == "NHWC"
    x = te.placeholder((1, size, size, 4) if last else (1, 4, size, size), name="x")
    kernel = te.placeholder((1, 1, 4, 8) if last else (8, 4, 1, 1), name="kernel", constant=constant)
    bias = te.placeholder((8, 1, 1), name="bias")
    y = nn.conv2d(x, kernel, 1, padded, data_layout=layout)
    return [x, kernel, nn.relu(y)] if last else [x, kernel, bias, nn.relu(y + bias)]


def products(size: int = 6) -> list[Tensor]:
    a, b, k = te.placeholder((2, 3, size, 8), name="a"), te.placeholder((2, 3, 8, 7), name="b"), te.reduce_axis((0, 8), name="k")
    return [a, b, te.compute((2, 3, size, 7), lambda n, h, i, j: te.sum(a[n, h, i, k] * b[n, h, k, j], axis=k), name="y")]


def transposed_after(size: int = 5) -> list[Tensor]:
    *given, y = pointwise(size)
    return [*given, te.compute((1, 8, size, size), lambda n, c, h, w: y[n, c, w, h], name="t")]


def counted(size: int = 5) -> list[Tensor]:
    """The value depends on where it is."""
    *given, y = pointwise(size)
    return [*given, te.compute((1, 8, size, size), lambda n, c, h, w: y[n, c, h, w] * w.astype("float32"), name="t")]


def shapes(tensors: list[Tensor]) -> list[tuple[int, ...]] | None:
    found = alternatives_of(Dag(tensors), (flat,))
    return [one.shape for one in found[0].dag.tensors] if found else None


@pytest.mark.parametrize(
    ("tensors", "wanted"),
    [
        (pointwise(), [(1, 4, 25), (8, 4, 1), (8, 1), (1, 8, 25)]),
        (pointwise(constant=True), None),  # vectors run along output channels
        (pointwise(layout="NHWC"), None),  # channels are last, and stand alone
        (pointwise(padded=1), None),  # the border is cut off row by row
        (pointwise(80), None),  # long enough for vectors as it is
        (products(), None),  # the last two are rows and columns
        (transposed_after(), None),
        (counted(), None),
    ],
)
def test_which_dimensions_are_joined(tensors: list[Tensor], wanted: list[tuple[int, ...]] | None) -> None:
    assert shapes(tensors) == wanted


def test_programs_over_fewer_dimensions_are_right(bench: Bench) -> None:
    dag = Dag(pointwise())
    (alternative,) = alternatives_of(dag, (flat,))
    rng = np.random.default_rng(0)
    inputs: dict[str, NDArray[np.generic]] = {one.name: rng.uniform(-1, 1, one.shape).astype(np.float32) for one in dag.inputs}
    flattened = {one.name: inputs[one.name].reshape(one.shape) for one in alternative.dag.inputs}
    expected, found = evaluate(dag.outputs, inputs, "float64"), evaluate(alternative.dag.outputs, flattened, "float64")
    for want, got in zip(expected, found, strict=True):
        assert np.allclose(want.reshape(got.shape), got, rtol=1e-12, atol=1e-12)
    case = Case("flat", alternative.dag, flattened, {one.name: value for one, value in zip(alternative.dag.outputs, found, strict=True)})
    chosen = programs_of(seeded_draw(1), case)[:10]
    assert bench.problems(chosen) == [""] * len(chosen)


def test_kernels_take_arrays_as_they_are_declared() -> None:
    tensors = pointwise(14)
    task = ansor.SearchTask(tensors=tensors)
    assert "flat" in [one.name for one in task.alternatives]
    (space,) = [one for one in task.spaces if one.algorithm == "flat"][:1]
    source = task.source(space.sketch, (0,) * len(space.sizes))
    assert [one.shape for one in source.arguments] == [one.shape for one in tensors]
