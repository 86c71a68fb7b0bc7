"""One channel with an axis of its own computes what is declared, and runs; what has more, or none to add along, is left alone."""

from __future__ import annotations

import numpy as np
import pytest

import ansor
from ansor import te
from ansor.algorithms.one_channel import one_channel
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.te.tensor import Tensor
from ansor.vta.one_channel import single_channel
from tests.vta_declarations import conv2d, dense, depthwise, grouped, narrowed, pool


def grey(channels: int, kernel: int, stride: int = 1, dilation: int = 1, *, images: int = 1, layout: str = "NCHW") -> list[Tensor]:
    """A convolution of one channel, which has no axis for it."""
    last = layout == "NHWC"
    x = te.placeholder((images, 9, 8, 1) if last else (images, 1, 9, 8), "int8", name="x")
    w = te.placeholder((kernel, kernel, 1, channels) if last else (channels, 1, kernel, kernel), "int8", name="w", constant=True)
    b = te.placeholder((channels,), "int32", name="b", constant=True)
    acc = te.nn.conv2d(x, w, stride, kernel // 2, dilation, 1, layout, out_dtype="int32", name="acc")
    return [x, w, b, te.compute(acc.shape, lambda *at: narrowed((acc[at] + b[at[3 if last else 1]]) >> 6), name="out")]


GREY = {
    "3x3": grey(20, 3), "1x1": grey(20, 1), "stride": grey(16, 3, 2, images=2), "dilation": grey(17, 3, 1, 2), "one to one": grey(1, 3),
    "images": grey(32, 1, images=2), "channels last": grey(24, 3, layout="NHWC"),
}  # fmt: skip


@pytest.mark.parametrize("name", GREY)
def test_the_same_numbers(name: str) -> None:
    dag, rng = Dag(GREY[name]), np.random.default_rng(len(name))
    (made,) = one_channel(dag)
    given = {one.name: rng.integers(-128, 128, one.shape).astype(one.dtype) for one in dag.inputs}
    (right,), (got,) = evaluate(dag.outputs, given), evaluate(made.dag.outputs, given)
    np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("core", ["default", "batch=1"])
@pytest.mark.parametrize("name", GREY)
def test_it_runs_and_is_right(name: str, core: str) -> None:
    found = ansor.auto_schedule(GREY[name], target=f"vta -core={core}", trials=2, progress=False)
    assert found.cost is not None


@pytest.mark.parametrize(
    "tensors",
    [conv2d((1, 16, 5, 5), 16, 3), dense(4, 16, 1), depthwise((1, 16, 6, 6), 3), grouped((1, 16, 5, 5), 32, 16), pool((1, 1, 6, 6), 2, stride=2)],
)
def test_others_stay_as_they_are(tensors: list[Tensor]) -> None:
    assert single_channel(Dag(tensors)) is None
