"""Copies of operands that are read in strides, backwards or from elsewhere, uneven tiles included: the programs are right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.schedule.steps import PackInside
from ansor.te import nn
from ansor.te.tensor import Tensor
from tests.declarations import Case, seeded_draw
from tests.programs import Bench, programs_of


def transposed() -> list[Tensor]:
    """The kernel is read backwards, at every second place."""
    data, kernel = te.placeholder((1, 5, 4, 4), name="data"), te.placeholder((5, 18, 4, 4), name="kernel")
    return [data, kernel, nn.conv2d_transpose(data, kernel, 2, 1, name="up")]


def strided() -> list[Tensor]:
    data, kernel = te.placeholder((1, 6, 9, 9), name="data"), te.placeholder((18, 6, 1, 1), name="kernel")
    return [data, kernel, nn.conv2d(data, kernel, 2, 0, name="conv")]


def backwards() -> list[Tensor]:
    a, b, k = te.placeholder((9, 19), name="A"), te.placeholder((20, 17), name="B"), te.reduce_axis((0, 19), name="k")
    return [a, b, te.compute((9, 17), lambda i, j: te.sum(a[i, 18 - k] * b[k + 1, 16 - j], axis=k), name="C")]


@pytest.mark.parametrize("declare", [transposed, strided, backwards])
def test_programs_with_such_copies_are_right(bench: Bench, declare: Callable[[], list[Tensor]]) -> None:
    dag, rng = Dag(declare()), np.random.default_rng(0)
    inputs: dict[str, NDArray[np.generic]] = {one.name: rng.uniform(-1, 1, one.shape).astype(np.float32) for one in dag.inputs}
    expected = {one.name: value for one, value in zip(dag.outputs, evaluate(dag.outputs, inputs, "float64"), strict=True)}
    case = Case(declare.__name__, dag, inputs, expected)
    found = [one for seed in range(12) for one in programs_of(seeded_draw(seed), case) if any(isinstance(step, PackInside) for step in one.sketch.steps)]
    assert found
    chosen = found[:: max(1, len(found) // 24)][:24]
    assert bench.problems(chosen) == [""] * len(chosen)
