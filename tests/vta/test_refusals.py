"""What no core computes is refused ahead of everything, in a sentence with a cure; what is beside it runs."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import ansor
from ansor import te
from ansor.errors import ScheduleError
from ansor.ir.dag import Dag
from ansor.te.expr import Expr, const
from ansor.te.tensor import Tensor
from ansor.vta.refusals import refusal
from tests.vta_declarations import narrowed, padded

SHAPE = (1, 16, 6, 6)


def elementwise(one: Callable[..., Expr], shape: tuple[int, ...] = SHAPE) -> list[Tensor]:
    x = te.placeholder(shape, "int8", name="x")
    return [x, te.compute(shape, lambda *at: one(x, *at), name="y")]


def wide(x: Tensor, *at: Expr) -> Expr:
    return x[at].astype("int32")


def gram(twice: bool) -> list[Tensor]:
    """Products of the rows of a matrix with each other."""
    x, r = te.placeholder((16, 32), "int8", name="x"), te.reduce_axis(32, "r")
    other = te.placeholder((16, 32), "int8", name="other") if twice else x
    acc = te.compute((16, 16), lambda i, j: te.sum(wide(x, i, r) * wide(other, j, r), axis=r), name="acc")
    return [*dict.fromkeys((x, other)), te.compute((16, 16), lambda i, j: narrowed(acc[i, j] >> 8), name="y")]


def of_converted() -> list[Tensor]:
    """A pool of int32 that becomes int8 first."""
    x, r = te.placeholder((4, 16, 8), "int32", name="x"), te.reduce_axis(8, "r")
    z = te.compute(x.shape, lambda *at: x[at].astype("int8"), name="z")
    total = te.compute((4, 16), lambda i, j: te.sum(wide(z, i, j, r), axis=r), name="total")
    return [x, te.compute((4, 16), lambda i, j: narrowed(total[i, j]), name="y")]


def padded_then_added() -> list[Tensor]:
    x = te.placeholder(SHAPE, "int8", name="x")
    around = padded(x, 1)
    return [x, te.compute(around.shape, lambda *at: narrowed(wide(around, *at) + 1), name="y")]


def with_bias(shape: tuple[int, ...], at: Callable[[Expr, Expr], tuple[Expr | int, ...]]) -> list[Tensor]:
    x, b = te.placeholder((5, 32), "int8", name="x"), te.placeholder(shape, "int32", name="b")
    return [x, b, te.compute((5, 32), lambda i, j: narrowed(wide(x, i, j) + b[at(i, j)]), name="y")]


def beside_it(what: str) -> list[Tensor]:
    """Another argument, that nobody reads, or another result."""
    x, y = elementwise(lambda x, *at: x[at], (4, 16))
    if what == "idle":
        return [x, te.placeholder((4, 16), "int8", name="z"), y]
    return [x, y, te.compute((4, 16), lambda *at: x[at] + const(1, "int8"), name="z")]


def unsigned() -> list[Tensor]:
    x = te.placeholder((4, 16), "uint8", name="x")
    return [x, te.compute((4, 16), lambda *at: narrowed(wide(x, *at)), name="y")]


def no_dimensions() -> list[Tensor]:
    x = te.placeholder((), "int8", name="x")
    return [x, te.compute((), lambda: x[()] + const(1, "int8"), name="y")]


def summed(one: Callable[..., Expr], shape: tuple[int, ...] = (4, 16, 2)) -> list[Tensor]:
    x, r = te.placeholder(shape, "int8", name="x"), te.reduce_axis(2, "r")
    total = te.compute((4, 16), lambda i, c: te.sum(one(x, i, c, r), axis=r), name="total")
    return [x, te.compute(total.shape, lambda *at: narrowed(total[at] >> 2), name="y")]


def finished(shape: tuple[int, ...], one: Callable[..., Expr], dtype: str = "int8") -> list[Tensor]:
    """A dense layer of 4 rows and 32 channels, and what is done to its sums."""
    x, w = te.placeholder((4, 32), dtype, name="x"), te.placeholder((32, 32), "int8", name="w", constant=True)
    given, r = te.placeholder((8, 32), "int8", name="r"), te.reduce_axis(32, "k")
    acc = te.compute((4, 32), lambda i, j: te.sum(wide(x, i, r) * wide(w, j, r), axis=r), name="acc")
    y = te.compute(shape, lambda i, j: narrowed(one(acc, given, i, j) >> 8), name="y")
    return [x, w, *([given] if any(read.tensor is given for read in y.compute.reads) else []), y]  # type: ignore[union-attr]


def read_at(shape: tuple[int, ...], places: Callable[[Expr, Expr], list[tuple[Expr | int, ...]]], *, beside: bool = False) -> list[Tensor]:
    """The sum of elements of a tensor, with or without another one of the result's shape."""
    x, z = te.placeholder(shape, "int8", name="x"), te.placeholder((4, 16), "int8", name="z")

    def one(i: Expr, j: Expr) -> Expr:
        read = [*([wide(z, i, j)] if beside else []), *(x[at].astype("int32") for at in places(i, j))]
        return narrowed(sum(read[1:], start=read[0]) - 1)

    return [x, *([z] if beside else []), te.compute((4, 16), one, name="y")]


def with_window() -> list[Tensor]:
    """Every second row, as the maximum of windows of one."""
    x, r = te.placeholder((8, 16), "int8", name="x"), te.reduce_axis(1, "r")
    top = te.compute((4, 16), lambda i, j: te.max(wide(x, i * 2 + r, j), axis=r), name="top")
    return [x, te.compute((4, 16), lambda i, j: top[i, j].astype("int8"), name="y")]


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        (elementwise(lambda x, *at: narrowed(wide(x, *at) // 3)), "y needs // by 3; "),
        (elementwise(lambda x, *at: (x[at] + const(1, "int8")) >> const(1, "int8")), "y needs >> of int8 values that may have wrapped around"),
        (elementwise(lambda x, *at: const(3, "int8")), "y reads no tensor"),
        (elementwise(lambda x, n, c, h, w: x[n, c, 5 - h, w]), r"it reads x\[.*\], which is backwards; .* reverse x on the host"),
        (elementwise(lambda x, i, j: x[i, i], (16, 16)), r"it reads x\[i0, i0\], a diagonal"),
        (gram(twice=False), "acc multiplies x with other parts of x, .* declare it as two tensors"),
        (of_converted(), "total reads z, computed before it"),
        (padded_then_added(), "padded needs a border, .* pads only what it reduces"),
        (elementwise(lambda x, i, j: te.if_then_else(j < 16, x[i, j], const(0, "int8")), (4, 32)), "y needs a border, or parts"),
        (beside_it("idle"), "it never reads its argument z: leave it out"),
        (beside_it("output"), "it makes y of int8 and z of int8; .*: declare an operator for each"),
        (unsigned(), "it reads x of uint8; .*: convert it on the host"),
        (no_dimensions(), "y has no dimensions; "),
        (summed(lambda x, i, c, r: wide(x, i, c, r) * 3 + 1), "total reduces what is computed from tensors; "),
        (summed(lambda x, i, c, r: wide(x, i, c * 2 + r, r), (4, 32, 2)), "total reads x at other places along dimension 1, .*: declare channels"),
        (finished((32, 4), lambda acc, r, i, j: acc[j, i]), "y reads acc in another shape or order; "),
        (finished((3, 32), lambda acc, r, i, j: acc[i, j] + acc[i + 1, j]), "y reads acc in another shape or order; "),
        (finished((4, 32), lambda acc, r, i, j: acc[i, j] + wide(r, i * 2, j)), "y reads r at places other than those of the result; "),
        (finished((4, 32), lambda acc, r, i, j: acc[i, j], "int32"), "acc multiplies x of int32; .*: pass x as int8"),
    ],
)
def test_refused_ahead(tensors: list[Tensor], said: str) -> None:
    found = refusal(Dag(tensors), 16)
    assert re.match(said, found), found


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        (with_bias((5,), lambda i, j: (i,)), "reads b_acc, which has no dimension for the channels of a result; .*: pass it in the shape"),
        (with_bias((35,), lambda i, j: (j + 3,)), "reads or writes b from channel 3 on; blocks have 16"),
        (with_bias((64,), lambda i, j: (j * 2,)), "reads or writes b_acc in steps of 2 channels"),
        (elementwise(lambda x, *at: narrowed(wide(x, *at) * wide(x, *at) * wide(x, *at) >> 8)), "a value of x_acc three times"),
        (elementwise(lambda x, i, j: x[j, i], (32, 32)), "changes the order of dimensions"),
        (read_at((9, 16), lambda i, j: [(i * 2 + 1, j)]), "a result in place of x_acc, .*: pass it in the shape of the result"),
        (read_at((4, 16, 7), lambda i, j: [(i, j, i * 2)]), "a result in place of x_acc, "),
        (read_at((1, 16), lambda i, j: [(0, j)]), "a result in place of x_acc, "),
        (read_at((5, 16), lambda i, j: [(i, j), (i + 1, j)]), "x_acc at two places at once; .*: pass it as two tensors"),
        (read_at((4, 16), lambda i, j: [(i, j), (0, j)]), "x_acc at two places at once; .*: pass it as two tensors"),
        (read_at((8, 16), lambda i, j: [(i * 2, j), (i * 2 + 1, j)]), "x_acc at two places at once; .*: pass it as two tensors"),
    ],
)
@pytest.mark.filterwarnings("ignore::ansor.errors.AnsorWarning")
def test_refused_by_the_generator(tensors: list[Tensor], said: str) -> None:
    for trials in (0, 2):
        with pytest.raises(ScheduleError, match=said):
            ansor.auto_schedule(tensors, target="vta", trials=trials, progress=False)


@pytest.mark.filterwarnings("ignore::ansor.errors.AnsorWarning")
def test_rows_without_channels_on_a_core_with_rows() -> None:
    """An element has rows times channels: what has rows alone would lie in it the wrong way round."""
    for trials in (0, 2):
        with pytest.raises(ScheduleError, match="reads b_acc, which has no dimension for the channels of a result"):
            ansor.auto_schedule(with_bias((5,), lambda i, j: (i,)), target="vta -core=batch=1", trials=trials, progress=False)


def product(given: tuple[int, ...], weights: tuple[int, ...]) -> list[Tensor]:
    """A vector, or matrices of a batch, times weights [n, k]."""
    x, w = te.placeholder(given, "int8", name="x"), te.placeholder(weights, "int8", name="w", constant=True)
    shape, r = (*given[:-1], weights[-2]), te.reduce_axis(given[-1], "r")
    acc = te.compute(shape, lambda *at: te.sum(wide(x, *at[:-1], r) * wide(w, *at[: len(weights) - 2], at[-1], r), axis=r), name="acc")
    return [x, w, te.compute(shape, lambda *at: narrowed(acc[at] >> 7), name="y")]


@pytest.mark.parametrize("tensors", [product((40,), (24, 40)), product((3, 5, 40), (3, 24, 40)), product((5, 1), (20, 1))])
@pytest.mark.parametrize("core", ["default", "batch=1"])
def test_products_of_vectors_and_of_batches(tensors: list[Tensor], core: str) -> None:
    """Rows of an element are a dimension that weights do not have; where there is none, all rows are the same."""
    assert ansor.auto_schedule(tensors, target=f"vta -core={core}", trials=2, progress=False).cost is not None


@pytest.mark.parametrize(
    "tensors",
    [
        elementwise(lambda x, *at: narrowed(wide(x, *at) // 4)),
        elementwise(lambda x, *at: ((wide(x, *at) * 3).astype("int8").astype("int32") * 5 + 2).astype("int8")),
        elementwise(lambda x, *at: narrowed(te.max(narrowed(wide(x, *at) * 3).astype("int32"), 0 - narrowed(wide(x, *at) * 3).astype("int32")) >> 1)),
        elementwise(lambda x, *at: x[at] * const(3, "int8") + const(100, "int8")),
        gram(twice=True),
        with_bias((1, 32), lambda i, j: (0, j)),
        read_at((9, 16), lambda i, j: [(i * 2 + 1, j)], beside=True),
        read_at((1, 16), lambda i, j: [(0, j)], beside=True),
        with_window(),
    ],
)
def test_what_is_beside_it_runs_and_is_right(tensors: list[Tensor]) -> None:
    assert not refusal(Dag(tensors), 16)
    found = ansor.auto_schedule(tensors, target="vta", trials=2, progress=False)
    assert found.cost is not None
