"""A VTA core as its users have it: declare an operator, compile it, queue it among others, and place a network by what each side costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ansor
from ansor import te
from ansor.errors import ArgumentError, MachineTrouble, MeasureError, ScheduleError
from ansor.integer.network import IntegerNetwork
from ansor.integer.reference import run
from ansor.offload.build import ByCost, Rates, build
from ansor.offload.program import Running
from ansor.te import nn
from ansor.te.expr import Expr, const
from ansor.te.tensor import Tensor
from ansor.vta.compiled import Operator, operator_from_text
from ansor.vta.runtime.operator_queue import Limits, Queue
from ansor.vta.runtime.simulators import FunctionalDriver
from tests.integer.networks import inputs_of
from tests.offload.networks import residual
from tests.vta_declarations import narrowed

pytestmark = pytest.mark.compiler

Int8 = NDArray[np.int8]


def grey(channels: int) -> list[Tensor]:
    """A convolution of a grey image, which has one channel."""
    x = te.placeholder((1, 1, 9, 8), "int8", name="x")
    w, b = te.placeholder((channels, 1, 3, 3), "int8", name="w", constant=True), te.placeholder((channels,), "int32", name="b", constant=True)
    sums = nn.conv2d(x, w, padding=1, out_dtype="int32")
    return [x, w, b, te.compute(sums.shape, lambda n, c, i, j: narrowed((sums[n, c, i, j] + b[c]) >> 6, 0), name="y")]


def doubled(shape: tuple[int, ...]) -> list[Tensor]:
    x = te.placeholder(shape, "int8", name="x")
    return [x, te.compute(shape, lambda *at: narrowed(x[at].astype("int32") * 2 - 5), name="y")]


def operator_of(tensors: list[Tensor]) -> Operator:
    return operator_from_text(ansor.auto_schedule(tensors, target="vta", trials=2, progress=False).source)


def of_grey(x: Int8, w: Int8, b: NDArray[np.int32]) -> NDArray[np.int64]:
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x[0, 0].astype(int), 1), (3, 3))
    sums: NDArray[np.int64] = np.einsum("ijrs,crs->cij", windows, w[:, 0].astype(int)) + b[:, None, None]
    found: NDArray[np.int64] = np.clip(sums >> 6, 0, 127)[None]
    return found


def test_operators_wait_in_a_short_queue_and_buffers_come_and_go() -> None:
    first, second = operator_of(grey(20)), operator_of(doubled((1, 20, 9, 8)))
    queue, rng = Queue(FunctionalDriver(first.configuration, seed=3), Limits(1 << 9, 1 << 8)), np.random.default_rng(0)
    w, b = rng.integers(-128, 128, (20, 1, 3, 3)).astype(np.int8), rng.integers(-3000, 3000, 20).astype(np.int32)
    image, weights, bias, middle = (queue.buffer(one.layout) for one in first.tensors)
    queue.write(weights, w)
    queue.write(bias, b)
    for _ in range(12):
        x = rng.integers(-128, 128, (1, 1, 9, 8)).astype(np.int8)
        result = queue.buffer(second.tensors[1].layout)
        queue.write(image, x)  # what waits reads the one before: it runs first
        queue.enqueue(first, (image, weights, bias, middle))
        queue.enqueue(second, (middle, result))
        np.testing.assert_array_equal(queue.read(result), np.clip(of_grey(x, w, b) * 2 - 5, -128, 127))
        queue.enqueue(second, (middle, result))
        queue.free(result)
    for _ in range(64):
        queue.enqueue(second, (middle, other := queue.buffer(second.tensors[1].layout)))
    np.testing.assert_array_equal(queue.read(other), np.clip(of_grey(x, w, b) * 2 - 5, -128, 127))
    reasons = {reason.name for reason, count in queue.counts.runs.items() if count}
    assert {"FREE", "OVERFLOW", "READ"} <= reasons


def test_a_queue_says_what_it_cannot_do_and_goes_on() -> None:
    operator = operator_of(doubled((4, 16)))
    queue = Queue(FunctionalDriver(operator.configuration, seed=1))
    x, y = (queue.buffer(one.layout) for one in operator.tensors)
    other = Queue(FunctionalDriver(operator.configuration)).buffer(operator.tensors[0].layout)
    larger = replace(operator.tensors[0].layout, shape=(1 << 14, 1 << 14))
    asked: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: queue.enqueue(operator, (x, x)), ArgumentError, "is written, and its buffer is passed for another tensor, too"),
        (lambda: queue.write(x, np.zeros((4, 16))), ArgumentError, "asked to write an array of float64 to a buffer of int8: convert it"),
        (lambda: queue.enqueue("operator", (x, y)), ArgumentError, "asked to run a str; pass an Operator"),  # type: ignore[arg-type]
        (lambda: queue.read(replace(other, address=1 << 20)), ArgumentError, "that this queue does not have: it was freed, or belongs to another queue"),
        (lambda: queue.buffer(larger), MachineTrouble, "free buffers, or give it more memory"),
        (lambda: Queue("simulator"), ArgumentError, "pass a driver, such as FunctionalDriver"),  # type: ignore[arg-type]
        (lambda: Limits(uops=0), ArgumentError, "a limit of 0 uops; pass a whole number of at least 1"),
    ]
    for ask, kind, sentence in asked:
        with pytest.raises(kind, match=sentence):
            ask()
    queue.write(x, np.arange(64, dtype=np.int8).reshape(4, 16))
    queue.enqueue(operator, (x, y))
    assert queue.read(y).ravel().tolist() == [max(-128, min(127, 2 * value - 5)) for value in range(64)]


@pytest.mark.parametrize(
    ("place", "wanted"),
    [
        (ByCost(Rates(transfer=1.0)), "host"), (ByCost(Rates(core_hertz=1.0)), "host"), (ByCost(Rates(host_macs=1e3)), "device"),
        (ByCost(Rates(host_macs=1e3), dict.fromkeys(residual().tensors, 0.0)), "host"), (ByCost(Rates(host_macs=3e5)), "both"),
    ],
    ids=["slow bus", "slow core", "slow host", "measured host", "between"],
)  # fmt: skip
def test_a_network_runs_where_it_costs_least_and_says_the_same(place: ByCost, wanted: str) -> None:
    network: IntegerNetwork = residual()
    placed = build(network, place=place)
    there, everything = placed.annotation.device, {one.output for one in network.operators}
    assert {"host": not there, "device": there == everything, "both": bool(there)}[wanted]
    running = Running(placed, Queue(FunctionalDriver(seed=1)))
    inputs = inputs_of(network, 4)
    right, found = run(network, inputs), running.run(inputs)
    for name in network.outputs:
        np.testing.assert_array_equal(found[name], right[name])
    running.close()


def of_one(value: Callable[..., Expr], shape: tuple[int, ...] = (4, 16), dtype: str = "int8") -> list[Tensor]:
    x = te.placeholder(shape, dtype, name="x")
    return [x, te.compute(shape, lambda *at: value(x, *at), name="y")]


def wide(x: Tensor, *at: Expr | int) -> Expr:
    return x[at].astype("int32")


def of_sums(value: Callable[[Tensor, Expr, Expr], Expr], *, same: bool = False, dtype: str = "int8") -> list[Tensor]:
    """A dense layer, and what is done to its sums."""
    x, r = te.placeholder((32, 32), dtype, name="x"), te.reduce_axis(32, "r")
    w = x if same else te.placeholder((32, 32), "int8", name="w", constant=True)
    acc = te.compute((32, 32), lambda i, j: te.sum(wide(x, i, r) * wide(w, j, r), axis=r), name="acc")
    return [*dict.fromkeys((x, w)), te.compute((32, 32), lambda i, j: narrowed(value(acc, i, j) >> 8), name="y")]


def with_idle() -> list[Tensor]:
    x, y = of_one(lambda x, *at: x[at])
    return [x, te.placeholder((4, 16), "int8", name="z"), y]


def of_two_results() -> list[Tensor]:
    x, y = of_one(lambda x, *at: x[at])
    return [x, y, te.compute((4, 16), lambda *at: x[at] + const(1, "int8"), name="z")]


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        (of_one(lambda x, *at: narrowed(wide(x, *at) // 3)), "needs // by 3"),
        (of_one(lambda x, i, j: narrowed(wide(x, i, j) + i.astype("int32"))), "needs the index i0 as a value; .* pass an int32 tensor with these numbers"),
        (of_one(lambda x, *at: narrowed(te.if_then_else(wide(x, *at) > 3, wide(x, *at), -1))), "needs a choice between values"),
        (of_one(lambda x, *at: (x[at].astype("float32") * 0.5).astype("int8")), "needs values of float32; .*scale by a product and a shift of int32"),
        (of_one(lambda x, *at: (x[at] * const(3, "int8")) >> const(1, "int8")), "needs >> of int8 values that may have wrapped around; "),
        (of_one(lambda x, *at: narrowed(wide(x, *at)), dtype="uint8"), "reads x of uint8; .*: convert it on the host"),
        (of_one(lambda x, i, j: x[3 - i, j]), r"it reads x\[.*\], which is backwards"),
        (of_one(lambda x, i, j: x[i, i], (16, 16)), "a diagonal; .* pass the diagonal as a tensor of its own"),
        (of_one(lambda x: x[()] + const(1, "int8"), ()), "y has no dimensions; .*: declare it as a tensor of one element"),
        (of_sums(lambda acc, i, j: acc[i, j], same=True), "acc multiplies x with other parts of x"),
        (of_sums(lambda acc, i, j: acc[i, j], dtype="int32"), "acc multiplies x of int32; .*: pass x as int8"),
        (of_sums(lambda acc, i, j: acc[j, i]), "y reads acc in another shape or order"),
        (with_idle(), "it never reads its argument z: leave it out"),
        (of_two_results(), "it makes y of int8 and z of int8; .*: declare an operator for each"),
    ],
)
def test_what_no_core_computes_is_said_before_anything_is_measured(tensors: list[Tensor], sentence: str) -> None:
    for trials in (0, 2):
        with pytest.raises((MeasureError, ScheduleError), match=sentence):
            ansor.auto_schedule(tensors, target="vta", trials=trials, progress=False)
