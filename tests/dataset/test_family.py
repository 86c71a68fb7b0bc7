"""The families of declarations."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor import te
from ansor.dataset.family import LARGEST, family, reductions
from ansor.te import nn, workloads
from ansor.te.expr import Expr
from ansor.te.tensor import Tensor
from ansor.zoo import operators
from tests.disguises import DISGUISES

MATMUL = "sum(([0 r0] * [r0 1]))"
CONV = "sum(([0 r0 2+r1 3+r2] * [1 r0 r1 r2]))"


def conv(batch: int, channels: int, image: int, filters: int, kernel: int, stride: int = 1, padding: int = 0, constant: bool = True) -> list[Tensor]:
    data = te.placeholder((batch, channels, image, image), name="data")
    weight = te.placeholder((filters, channels, kernel, kernel), name="weight", constant=constant)
    return [data, weight, nn.conv2d(data, weight, stride, padding)]


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 4), st.integers(2, 9), st.integers(9, 14), st.integers(2, 5), st.integers(2, 5), st.integers(1, 3), st.integers(0, 2), st.booleans())
def test_sizes_and_constants_do_not_matter(batch: int, channels: int, image: int, filters: int, kernel: int, stride: int, padding: int,
                                               constant: bool) -> None:
    assert family(conv(batch, channels, image, filters, kernel, stride, padding, constant)) == CONV


def test_an_epilogue_does_not_matter() -> None:
    plain = conv(2, 3, 8, 4, 3)
    assert family([*plain[:2], nn.relu(plain[2])]) == CONV


def test_trivial_axes_are_omitted_and_adjacent_ones_merged() -> None:
    assert family(conv(1, 3, 8, 4, 3)) == "sum(([0 r0 r1 r2] * [r0 1+r1 2+r2]))"
    assert family(conv(1, 3, 8, 4, 1)) == "sum(([0 r0] * [r0 1]))"


@pytest.mark.parametrize("name", DISGUISES)
def test_notation_does_not_matter(name: str) -> None:
    disguise, random = DISGUISES[name], Random(0)
    for tensors in (operators.matmul(8, 12, 16), workloads.conv2d_nchw_bn_relu(1, 8, 8, 4, 4, 3, 1, 1)):
        assert family(disguise(list(tensors), random)) == family(tensors)


def test_other_layouts_types_and_operations_are_other_families() -> None:
    a, b, k = te.placeholder((4, 5), name="a"), te.placeholder((5, 6), name="b"), te.reduce_axis(5, "k")
    turned = te.placeholder((6, 5), name="turned")
    c, d = te.placeholder((4, 5), "int8", "c"), te.placeholder((5, 6), "int8", "d")
    found = [
        family([a, b, te.compute((4, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k))]),
        family([a, turned, te.compute((4, 6), lambda i, j: te.sum(a[i, k] * turned[j, k], axis=k))]),
        family([a, b, te.compute((4, 6), lambda i, j: te.min(a[i, k] + b[k, j], axis=k))]),
        family([c, d, nn.matmul(c, d, out_dtype="int32")]),
    ]
    assert found == [MATMUL, "sum(([0 r0] * [1 r0]))", "min(([0 r0] + [r0 1]))", "sum int32((int8[0 r0] * int8[r0 1]))"]


def test_groups_windows_and_gathers_are_distinguished() -> None:
    data, weight = te.placeholder((2, 8, 9, 9), name="data"), te.placeholder((8, 4, 3, 3), name="weight")
    assert family([data, weight, nn.conv2d(data, weight, groups=2)]) == "sum(([0 1/+r0 2+r1 3+r2] * [1 r0 r1 r2]))"
    index, table, n = te.placeholder((4, 6), "int32", "index"), te.placeholder((9, 5), name="table"), te.reduce_axis(6, "n")
    assert family([index, table, te.compute((4, 5), lambda b, d: te.sum(table[index[b, n], d], axis=n))]) == "sum([0+?+r0 1])"


def test_a_triangle_is_not_padding() -> None:
    a, b, k = te.placeholder((6, 6), name="a"), te.placeholder((6, 6), name="b"), te.reduce_axis(6, "k")

    def below(i: Expr, j: Expr) -> Expr:
        return te.sum(te.if_then_else(k <= i, a[i, k] * b[k, j], 0.0), axis=k)

    assert family([a, b, te.compute((6, 6), below)]) != MATMUL


def test_several_reductions_in_order() -> None:
    data = te.placeholder((8, 9), name="data")
    assert reductions([data, nn.softmax(data)]) == ("max([0 r0])", "sum(exp(([0 r0] - @0[0])))")


def test_without_a_reduction_the_outputs_are_the_family() -> None:
    data = te.placeholder((8, 9), name="data")
    assert family([data, nn.relu(data)]) == "max([0], constant)"


def test_large_stages_are_not_analysed() -> None:
    data = te.placeholder((8,), name="data")

    def many(i: Expr) -> Expr:
        value: Expr = data[i]
        for _ in range(LARGEST):
            value = te.exp(value)
        return value

    assert family([data, te.compute((8,), many)]) == "large[0]"
