"""Groups as a dimension compute what is declared, whatever the layout; what has no groups, or uses them otherwise, is left alone."""

from __future__ import annotations

import numpy as np
import pytest

from ansor import te
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.te.tensor import Tensor
from ansor.vta.groups import grouping_of, in_groups
from tests.vta_declarations import conv2d, depthwise, grouped, narrowed


def images(channels: int, outputs: int, groups: int, layout: str = "NHWC") -> list[Tensor]:
    """Channels last, weights HWIO, and a bias for each place."""
    x = te.placeholder((1, 5, 6, channels), "int8", name="x")
    w = te.placeholder((3, 3, channels // groups, outputs), "int8", name="w", constant=True)
    b = te.placeholder((5, 6, outputs), "int32", name="b", constant=True)
    acc = te.nn.conv2d(x, w, 1, 1, 1, groups, layout, out_dtype="int32", name="acc")
    return [x, w, b, te.compute(acc.shape, lambda n, y, z, c: narrowed((acc[n, y, z, c] + b[y, z, c]) >> 6), name="out")]


CASES = {
    "blocks": (grouped((1, 32, 5, 6), 64, 2), (2, 1)), "two at a time": (grouped((1, 32, 5, 6), 32, 4), (4, 2)), "all": (grouped((2, 12, 5, 6), 18, 3), (3, 3)),
    "residual": (grouped((1, 64, 4, 4), 32, 8, residual=True), (8, 4)), "multiplier": (grouped((1, 16, 5, 5), 32, 16), (16, 16)),
    "multiplier of one place": (grouped((1, 16, 5, 5), 32, 16, 1, pad=0), (16, 16)),
    "depthwise": (depthwise((1, 32, 6, 6), 3, pad=1), (32, 16)), "channels last": (images(32, 64, 4), (4, 2)),
    "given weights": (grouped((1, 32, 5, 6), 64, 2, constant=False), (2, 1)),
}  # fmt: skip
"""Declarations, how many groups they have, and how many of these are one."""


@pytest.mark.parametrize("name", CASES)
def test_the_same_numbers(name: str) -> None:
    tensors, (groups, together) = CASES[name]
    dag, rng = Dag(tensors), np.random.default_rng(len(name))
    grouping = grouping_of(dag)
    assert grouping is not None and (grouping.groups, grouping.together(16)) == (groups, together)
    found = in_groups(dag, 16)
    assert found is not None
    changed, transforms = found
    given = {one.name: rng.integers(-128, 128, one.shape).astype(one.dtype) for one in dag.inputs}
    (right,) = evaluate(dag.outputs, given)
    laid = {
        one.name: transforms[one.name].apply(given[one.name]) if one.name in transforms else given[one.name].reshape(one.shape) for one in changed.inputs
    }
    (got,) = evaluate(changed.outputs, laid)
    np.testing.assert_array_equal(got.reshape(right.shape), right)
    assert got.ndim == right.ndim + 1 and all(one.shape == laid[one.name].shape for one in changed.inputs)


def test_what_has_no_groups() -> None:
    assert grouping_of(Dag(conv2d((1, 32, 6, 6), 32, 3, pad=1))) is None
    assert in_groups(Dag(conv2d((1, 32, 6, 6), 32, 3, pad=1)), 16) is None


def test_weights_that_cannot_be_laid_out() -> None:
    grouping = grouping_of(Dag(grouped((1, 32, 5, 6), 32, 4, constant=False)))
    assert grouping is not None and "acc has 4 groups of 8 channels in and 8 out, but blocks have 16, and w is not a constant" in grouping.refusal(16)
    assert grouping.refusal(8) == "" and in_groups(Dag(grouped((1, 32, 5, 6), 32, 4, constant=False)), 16) is None


def test_channels_that_are_used_otherwise() -> None:
    """Neighbours of the channels are read, too."""
    a, w, c = te.placeholder((4, 32), "int8", name="a"), te.placeholder((32, 16), "int8", name="w", constant=True), te.reduce_axis(16, "c")
    acc = te.compute((4, 32), lambda n, o: te.sum(a[n, o // 16 * 16 + c].astype("int32") * w[o, c].astype("int32"), axis=c), name="acc")
    assert in_groups(Dag([a, w, te.compute((4, 32), lambda n, o: narrowed(acc[n, o] >> 6), name="same")]), 16) is not None
    assert in_groups(Dag([a, w, te.compute((4, 31), lambda n, o: narrowed(acc[n, o + 1] >> 6), name="moved")]), 16) is None
