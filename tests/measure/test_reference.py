"""Which declarations have a plain program beside their reference."""

from __future__ import annotations

import pytest

from ansor import te
from ansor.ir.dag import Dag
from ansor.measure.reference import measure_task
from ansor.measure.verify import MEASURED_FROM
from ansor.targets.base import parse_target
from ansor.te.tensor import Tensor


def sums(length: int, dtype: str = "float32", wide: str = "") -> list[Tensor]:
    x, r = te.placeholder((3, length), dtype, name="x"), te.reduce_axis((0, length), name="r")
    return [x, te.compute((3,), lambda i: te.sum(x[i, r].astype(wide or dtype), axis=r), name="y")]


def largest(length: int) -> list[Tensor]:
    x, r = te.placeholder((3, length), name="x"), te.reduce_axis((0, length), name="r")
    return [x, te.compute((3,), lambda i: te.max(x[i, r], axis=r), name="y")]


@pytest.mark.parametrize(("tensors", "has"), [
    (sums(MEASURED_FROM), True), (sums(MEASURED_FROM - 1), False), (sums(1000, "float64"), False), (sums(1000, "float16"), False),
    (sums(1000, "int8", "int32"), False), (sums(1000, "float16", "float32"), True), (largest(1000), False),
])  # fmt: skip
def test_long_sums_in_float32_have_one(tensors: list[Tensor], has: bool) -> None:
    reference = measure_task(Dag(tensors), parse_target("cpu -threads=2")).reference
    assert reference is not None and (reference.plain is not None) == has
    if reference.plain is not None:
        assert reference.plain.threads == 1 and [one.dtype for one in reference.plain.arguments] == [tensors[0].dtype, "float32"]
        assert [one.dtype for one in reference.arguments] == ["float64", "float64"]
