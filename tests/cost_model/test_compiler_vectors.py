"""What the C compiler puts in vectors where no annotation does."""

import numpy as np
import pytest

from ansor import te
from ansor.cost_model.analytic import estimated_cycles
from ansor.cost_model.buffer_features import Statement, statements_of
from ansor.cost_model.compiler_vectors import GATHERED, SHUFFLES, packed_by_compiler
from ansor.cost_model.register_tile import register_tile
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeAt, Fuse, PragmaUnroll, Reorder, Split, Step, Vectorize
from ansor.targets.base import parse_target
from ansor.te import compute, placeholder, reduce_axis, workloads
from ansor.te import sum as total
from ansor.te.tensor import Tensor

TARGET = parse_target("cpu -mcpu=znver5 -threads=1")
LANES = 16


def statement(tensors: list[Tensor], *steps: Step) -> Statement:
    """The last statement of a program."""
    return statements_of(Sketch(Dag(tensors), steps).lower_row(()))[-1]


def at_once(tensors: list[Tensor], *steps: Step) -> float:
    one = statement(tensors, *steps)
    return float(np.asarray(packed_by_compiler(one, register_tile(one, LANES, optimizes=True).elements, LANES, optimizes=True).lanes))


def scaled(columns: int, apart: int = 1) -> list[Tensor]:
    a = placeholder((8, columns * apart), name="a")
    return [a, compute((8, columns), lambda i, j: a[i, j * apart] * 2.0, name="b")]


def test_the_innermost_loop_of_plain_arithmetic() -> None:
    assert at_once(scaled(64)) == LANES
    assert at_once(scaled(24)) == 24 / 2  # one whole vector and half of one
    assert at_once(scaled(64, apart=4)) == LANES, "four loads, taken apart"
    assert at_once(scaled(64, apart=32)) == 1


def test_not_where_a_loop_is_in_vectors_already() -> None:
    assert at_once(scaled(64), Vectorize("b", "j")) == 1


def test_not_along_what_is_far_apart() -> None:
    a = placeholder((64, 8), name="a")
    transposed = [a, compute((8, 64), lambda i, j: a[j, i], name="b")]
    assert at_once(transposed) == LANES, "eight apart"
    assert at_once(transposed, Reorder("b", ("j", "i"))) == LANES, "eight rows are written out"
    c = placeholder((64, 16), name="c")
    longer = [c, compute((16, 64), lambda i, j: c[j, i], name="b")]
    assert at_once(longer, Reorder("b", ("j", "i"))) == 1, "what is stored has to be together"


@pytest.mark.parametrize(("inner", "limit", "found"), [(2, 0, LANES), (8, 0, LANES), (16, 0, 1), (16, 16, LANES), (16, 8, 1)])
def test_the_loop_around_a_reduction_that_is_written_out(inner: int, limit: int, found: float) -> None:
    order = Reorder("C", ("i", "k_0", "j", "k_1"))
    steps = [Split("C", "k", (inner,), 2), order, *([PragmaUnroll("C", limit)] if limit else [])]
    assert at_once(workloads.matmul(32, 64, 32), *steps) == found


@pytest.mark.parametrize(("row", "found"), [(4, 1), (8, LANES)])
def test_a_reduction_that_is_not_written_as_vectors_hinders_nothing(row: int, found: float) -> None:
    """A reduction whose index divides is not written as vectors, so the loop around it can be."""
    a, j, k = placeholder((4, row, 64), name="a"), reduce_axis(4, name="j"), reduce_axis(4, name="k")
    tensors = [a, compute((64,), lambda i: total(a[j, k, i], axis=[j, k]), name="y")]
    assert at_once(tensors, Fuse("y", ("j", "k")), Vectorize("y", "j_k_f"), PragmaUnroll("y", 16)) == found


def test_not_around_a_long_reduction() -> None:
    assert at_once(workloads.matmul(32, 64, 32)) == 1


def test_what_runs_at_once_costs_less() -> None:
    a, k = placeholder((64, 32), name="a"), reduce_axis((0, 4), name="k")
    sums = [a, compute((64, 8), lambda i, j: total(a[i, j + k], axis=k), name="b")]
    loops = Sketch(Dag(sums), ()).lower_row(())
    assert at_once(sums) == 8
    assert estimated_cycles(loops, 1, TARGET)[0] < 64 * 8 * 4 / 2


@pytest.mark.parametrize(("apart", "loads"), [(1, 1.0), (4, SHUFFLES), (8, GATHERED * LANES)])
def test_far_elements_cost_shuffles_or_a_load_each(apart: int, loads: float) -> None:
    one = statement(scaled(64, apart))
    (read,) = [count for buffer, count in register_tile(one, LANES, optimizes=True).reads.items() if buffer.name == "a"]
    assert float(np.asarray(read)) == loads


def sums_of(value: str, apart: int) -> Statement:
    """Sums along k of 16 neighbours that are written out, of elements that are neighbours or far apart."""
    a, k = placeholder((8, 12, 16) if apart == 1 else (8, 16, 12), name="a"), reduce_axis((0, 12), name="k")
    of = {"a": lambda one: one, "exp": te.exp}[value]
    return statement([a, compute((8, 16), lambda i, j: total(of(a[i, k, j] if apart == 1 else a[i, j, k]), axis=k), name="b")], Reorder("b", ("i", "k", "j")))


@pytest.mark.parametrize(("value", "apart", "vectors"), [("a", 1, 1), ("a", 12, 16), ("exp", 1, 1), ("exp", 12, 1)])
def test_sums_written_out_in_a_row(value: str, apart: int, vectors: int) -> None:
    assert float(np.asarray(register_tile(sums_of(value, apart), LANES, optimizes=True).vectors)) == vectors


@pytest.mark.parametrize(("order", "vectors"), [(("i", "k", "r", "j"), 1), (("i", "r", "k", "j"), 16)])
def test_far_elements_that_the_innermost_reduction_does_not_change(order: tuple[str, ...], vectors: int) -> None:
    """w[j, k] is far from w[j + 1, k]. With r innermost, a vector of them is collected once for all r."""
    x, w = placeholder((8, 20), name="x"), placeholder((16, 12), name="w")
    k, r = reduce_axis((0, 12), name="k"), reduce_axis((0, 20), name="r")
    weighted = [x, w, compute((8, 16), lambda i, j: total(x[i, r] * w[j, k], axis=[k, r]), name="b")]
    assert float(np.asarray(register_tile(statement(weighted, Reorder("b", order)), LANES, optimizes=True).vectors)) == vectors


@pytest.mark.parametrize(("place", "vectors"), [((), 1), ((ComputeAt("p", "b", "r"),), 16)])
def test_far_elements_that_the_innermost_reduction_writes_anew(place: tuple[Step, ...], vectors: int) -> None:
    """p is the same for all r. But if it is made again for each r, what is read in the next step of r is not known to be the same."""
    x, w, r = placeholder((8, 20), name="x"), placeholder((16, 3), name="w"), reduce_axis((0, 20), name="r")
    p = compute((16, 3), lambda j, c: te.exp(w[j, c]), name="p")
    tensors = [x, w, compute((8, 16), lambda i, j: total(x[i, r] * p[j, 0] * p[j, 2], axis=r), name="b")]
    steps = Reorder("b", ("i", "r", "j")), *place
    assert float(np.asarray(register_tile(statement(tensors, *steps), LANES, optimizes=True).vectors)) == vectors
