"""Declarations as people write them, tuned with a few trials and called, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import ansor
from ansor import Pin, te
from ansor.errors import ScheduleError
from ansor.measure.record import load
from ansor.te import nn
from ansor.te.tensor import Tensor

pytestmark = pytest.mark.compiler

ONE = "cpu -threads=1"
RNG = np.random.default_rng(0)


def random(*shape: int) -> NDArray[np.float32]:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def is_close(found: object, wanted: object) -> bool:
    return np.allclose(np.asarray(found), np.asarray(wanted), rtol=1e-4, atol=1e-4)


def columns(x: NDArray[np.float32], size: int, stride: int) -> NDArray[np.float32]:
    """The windows of an image [n, c, h, w] with a border of one: [n, c, rows, columns, size, size]."""
    around = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows: NDArray[np.float32] = np.lib.stride_tricks.sliding_window_view(around, (size, size), axis=(2, 3))[:, :, ::stride, ::stride]
    return windows


def test_a_result_brings_its_inputs_in_the_order_of_reading() -> None:
    x, w, b = te.placeholder((12, 16), name="x"), te.placeholder((16, 20), name="w"), te.placeholder((20,), name="b")
    kernel = ansor.auto_schedule(nn.relu(nn.matmul(x, w) + b), target=ONE, trials=2, progress=False)
    given = random(12, 16), random(16, 20), random(20)
    assert is_close(kernel(*given), np.maximum(given[0] @ given[1] + given[2], 0))


def doubled(e: te.Expr, x: te.Expr, k: int) -> te.Expr:
    return e * e * 0.25 + 0.5


def nested(e: te.Expr, x: te.Expr, k: int) -> te.Expr:
    return (e + x * float(k % 7)) * 0.5


@pytest.mark.parametrize(("step", "times"), [(doubled, 40), (nested, 300)])
def test_expressions_of_any_size(step: Callable[..., te.Expr], times: int) -> None:
    """Forty doublings are a text of 2^40 characters, and C compilers accept 256 brackets in each other."""
    x = te.placeholder((70,), name="x")
    kernel = ansor.auto_schedule([x, te.compute((70,), lambda i: reduce(lambda e, k: step(e, x[i], k), range(times), x[i]), name="y")], target=ONE, trials=2,
                                 progress=False)  # fmt: skip
    given = random(70)
    wanted = reduce(lambda e, k: e * e * 0.25 + 0.5 if step is doubled else (e + given * (k % 7)) * 0.5, range(times), given.astype(np.float64))
    assert is_close(kernel(given), wanted)
    assert len(str(kernel.source)) < 60_000


def convolution(kernel: int, size: int, stride: int) -> list[Tensor]:
    x, w, b = te.placeholder((1, 8, size, size), name="x"), te.placeholder((16, 8, kernel, kernel), name="w"), te.placeholder((16, 1, 1), name="b")
    return [x, w, b, nn.relu(nn.conv2d(x, w, stride, kernel // 2) + b)]


@pytest.mark.parametrize(("algorithm", "kernel", "size", "stride"), [("flat", 1, 14, 1), ("im2col", 3, 9, 2)])
def test_other_algorithms_are_searched_and_right(algorithm: str, kernel: int, size: int, stride: int, tmp_path: Path) -> None:
    """Measuring compares each program with the declaration; the best one is called here, whatever its algorithm."""
    records = tmp_path / "conv.jsonl"
    found = ansor.auto_schedule(convolution(kernel, size, stride), target=ONE, trials=48, records=records, algorithms=(algorithm,), progress=False)
    trials = load(records).records
    assert any(one.algorithm == algorithm and one.costs for one in trials) and any(not one.algorithm for one in trials)
    x, w, b = random(1, 8, size, size), random(16, 8, kernel, kernel), random(16, 1, 1)
    windows = columns(x, 3, stride)[..., 1:2, 1:2] if kernel == 1 else columns(x, 3, stride)
    wanted = np.maximum(np.einsum("ncyxrs,ocrs->noyx", windows, w) + b, 0)
    assert is_close(found(x, w, b), wanted)


def test_places_that_are_computed_from_inputs_stay_inside_while_measuring(tmp_path: Path) -> None:
    counts, table = te.placeholder((7, 4), "int32", name="counts"), te.placeholder((16, 5), name="table")
    r, m, shown = te.reduce_axis((0, 4), "r"), te.reduce_axis((0, 4), "m"), te.placeholder((7,), "bool", name="shown")
    total = te.compute((7,), lambda i: te.sum(counts[i, r], axis=r), name="total")
    most = te.compute((7,), lambda i: te.max(counts[i, m], axis=m), name="most")
    place = te.compute((7,), lambda i: te.if_then_else(shown[i], total[i], most[i]), name="place")
    out = te.compute((7, 5), lambda i, j: table[place[i], j], name="out")
    records = tmp_path / "places.jsonl"
    kernel = ansor.auto_schedule([counts, shown, table, out], target=ONE, trials=3, records=records, progress=False)
    assert all(one.costs for one in load(records).records)
    given, flags, rows = RNG.integers(0, 4, (7, 4)).astype(np.int32), RNG.integers(0, 2, 7).astype(bool), random(16, 5)
    np.testing.assert_array_equal(kernel(given, flags, rows), rows[np.where(flags, given.sum(1), given.max(1))])


@pytest.mark.parametrize(
    ("pins", "sentence"),
    [
        ([Pin("D.j", (..., 16))], r"but no sketch has that name; the names are .*\.vector.*CacheWrite"),
        ([Pin("matmul.k", (63,))], r"but no program is left; matmul.k has 1 or 2 or 4"),
        ([Pin("matmul.vector", True), Pin("matmul.vector", False)], r"no program is left with matmul.vector to True; matmul.vector has 0 or 1"),
    ],
)
def test_pins_that_leave_nothing_say_what_there_is(pins: list[Pin], sentence: str) -> None:
    x, w = te.placeholder((16, 16), name="x"), te.placeholder((16, 16), name="w")
    with pytest.raises(ScheduleError, match=sentence):
        ansor.auto_schedule(nn.matmul(x, w), target=ONE, trials=2, pins=pins, progress=False)
