"""Declarations by hand at the corners of C: each was wrong once, or is where generators go wrong. Every sketch, several widths and threads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ansor import te
from ansor.te.expr import Expr
from tests.declarations import Case, seeded_draw
from tests.programs import TARGETS, Bench, Program, case_of, interpreted, sanitized_problems, sanitizer_compiler, sketches

pytestmark = pytest.mark.compiler

Corner = Callable[[], Case]


def narrow_choice() -> Case:
    """A choice without lanes beside a vector: an int in C, which clang takes for the bits of a short vector of the same size."""
    flag, x = te.placeholder((16,), "int16", name="flag"), te.placeholder((16, 2), "int16", name="x")
    return case_of([flag, x, te.compute((16, 2), lambda i, j: te.if_then_else(flag[i] > 0, flag[i], -3) + x[i, j], name="y")])


def narrow_choice_everywhere() -> Case:
    """A choice between narrow scalars that every lane shares."""
    x = te.placeholder((3,), "int8", name="x")
    return case_of([x, te.compute((3, 16), lambda i, j: te.if_then_else(i < 2, x[i], 4), name="y")])


def condition_everywhere() -> Case:
    """A bool that every lane shares."""
    x = te.placeholder((3,), name="x")
    return case_of([x, te.compute((3, 16), lambda i, j: te.any(x[i] > 0.0, i < 1), name="y")])


def bool_from_lanes() -> Case:
    """Conditions stored, read and converted."""
    x, y = te.placeholder((3, 17), "int32", name="x"), te.placeholder((3, 17), "bool", name="y")
    z = te.compute((3, 17), lambda i, j: te.all(x[i, j] > 0, te.logical_not(y[i, j])), name="z")
    return case_of([x, y, z, te.compute((3, 17), lambda i, j: z[i, j].astype("float32") + y[i, j].astype("int8").astype("float32"), name="w")])


def narrow_products() -> Case:
    """Sums of products that wrap."""
    rng = np.random.default_rng(0)
    a, b = te.placeholder((5, 8), "int8", name="a"), te.placeholder((8, 16), "int8", name="b")
    r = te.reduce_axis((0, 8), name="r")
    c = te.compute((5, 16), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")
    d = te.compute((5, 16), lambda i, j: c[i, j] * 5 - 3, name="d")
    return case_of([a, b, c, d], a=rng.integers(-128, 128, (5, 8)).astype(np.int8), b=rng.integers(-128, 128, (8, 16)).astype(np.int8))


def short_products() -> Case:
    """The same with int16, greatest instead of sum."""
    rng = np.random.default_rng(0)
    a, b = te.placeholder((5, 8), "int16", name="a"), te.placeholder((8, 16), "int16", name="b")
    r = te.reduce_axis((0, 8), name="r")
    c = te.compute((5, 16), lambda i, j: te.prod(a[i, r] + b[r, j], axis=r), name="c")
    return case_of([a, b, c], a=rng.integers(-9999, 9999, (5, 8)).astype(np.int16), b=rng.integers(-9999, 9999, (8, 16)).astype(np.int16))


def _guarded(body: Callable[[Expr, Expr, Expr, te.Tensor, te.Tensor], Expr]) -> Case:
    a, b = te.placeholder((6, 4), name="a"), te.placeholder((4, 16), name="b")
    r = te.reduce_axis((0, 4), name="r")
    return case_of([a, b, te.compute((6, 16), lambda i, j: te.sum(body(i, j, r, a, b), axis=r), name="c")])


def second_half_of_a_condition() -> Case:
    """In a register tile reads come first, but not what the first half of a condition guards."""
    return _guarded(lambda i, j, r, a, b: te.if_then_else(te.all(i >= 1, a[i - 1, r] > 0.0), b[r, j], a[i, r]))


def second_half_in_lanes() -> Case:
    """The same with a condition that varies over the lanes, which all compute it."""
    return _guarded(lambda i, j, r, a, b: te.if_then_else(te.all(a[i, r] < b[r, j], te.any(j < 1, b[r, j - 1] > 0.0)), b[r, j], a[i, r]))


def guarded_division() -> Case:
    """A division by what is zero where the other side is chosen."""
    x, y = te.placeholder((4, 16), "int32", name="x"), te.placeholder((4,), "int32", name="y")
    z = te.compute((4, 16), lambda i, j: te.if_then_else(te.all(y[i] != 0, x[i, j] > 0), te.floordiv(7, y[i]), x[i, j]), name="z")
    return case_of([x, y, z], y=np.array([0, 3, -2, 0], dtype=np.int32))


def guarded_range() -> Case:
    """A padding whose range along the lanes depends on data that another test guards."""
    n, x = te.placeholder((4,), "int32", name="n"), te.placeholder((4, 20), name="x")
    y = te.compute((5, 20), lambda i, j: te.if_then_else(te.all(i < 4, j < n[i]), x[i, j], -1.0), name="y")
    return case_of([n, x, y], n=np.array([0, 5, 20, 7], dtype=np.int32))


def own_place_read_by_index() -> Case:
    """An inlined stage that uses its place as a value, read where data say."""
    x, chosen = te.placeholder((6,), name="x"), te.placeholder((5,), "int32", name="chosen")
    p = te.compute((6,), lambda i: x[i] * i.astype("float32"), name="p")
    return case_of([x, chosen, te.compute((5,), lambda j: p[chosen[j]], name="q")], chosen=np.array([0, 5, 2, 2, 1], dtype=np.int32))


def index_that_wraps() -> Case:
    """Narrow index arithmetic wraps as all narrow arithmetic does."""
    u, table = te.placeholder((5,), "uint8", name="u"), te.placeholder((256,), name="table")
    q = te.compute((5,), lambda j: table[u[j] + 200] + table[te.floordiv(u[j] * 2, 3)], name="q")
    return case_of([u, table, q], u=np.array([0, 55, 100, 200, 255], dtype=np.uint8))


def numbers_beyond_float() -> Case:
    """Literals that float32 cannot hold, and its smallest."""
    x = te.placeholder((16,), name="x")
    y = te.compute((16,), lambda i: te.if_then_else(x[i] > 0, te.const(1e39), te.const(-1e39)), name="y")
    return case_of([x, y, te.compute((16,), lambda i: x[i] * 1e-45 + te.const(-0.0), name="z")])


def great_integers() -> Case:
    """Literals at the ends of 64 bits."""
    x = te.placeholder((16,), "int64", name="x")
    body: Callable[[Expr], Expr] = lambda i: te.max(te.min(x[i], te.const(2**63 - 1, "int64")), te.const(-(2**63), "int64")) + te.const(2**40, "int64")  # noqa: E731
    return case_of([x, te.compute((16,), body, name="y")])


def single_elements() -> Case:
    """A reduction of one element still starts from its identity; rank 0 throughout."""
    x = te.placeholder((1, 1), name="x")
    r, s = te.reduce_axis((0, 1), name="r"), te.reduce_axis((0, 1), name="s")
    y = te.compute((), lambda: te.prod(x[r, s], axis=[r, s]), name="y")
    return case_of([x, y, te.compute((), lambda: y[()] + 1.0, name="z")])


def late_start() -> Case:
    """Reduction axes that begin elsewhere, one of them of one element."""
    x = te.placeholder((9, 7, 16), name="x")
    r, s = te.reduce_axis((3, 9), name="r"), te.reduce_axis((6, 7), name="s")
    return case_of([x, te.compute((16,), lambda j: te.max(x[r, s, j], axis=[r, s]), name="y")])


def negative_quotients() -> Case:
    """Division and remainder round down, or towards zero."""
    x = te.placeholder((7, 4), "int32", name="x")

    def all_four(i: Expr, j: Expr) -> Expr:
        return te.floordiv(x[i, j], -3) + te.floormod(x[i, j], -3) * 10 + te.truncdiv(x[i, j], 2) * 100 + te.truncmod(x[i, j], 2) * 1000

    y = te.compute((7, 4), all_four, name="y")
    z = te.compute((7, 4), lambda i, j: x[te.floormod(i - 9, 7), te.floordiv(j - 4, 2) + 2], name="z")
    return case_of([x, y, z], x=np.arange(-14, 14, dtype=np.int32).reshape(7, 4))


def infinities_and_nan() -> Case:
    """Infinite and undefined inputs pass through; the first operand of max and min wins."""
    x = te.placeholder((3, 16), name="x")
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 2.0, 3.0] * 6, dtype=np.float32).reshape(3, 16)
    return case_of([x, te.compute((3, 16), lambda i, j: te.min(te.max(x[i, j], 0.0), 6.0), name="y")], x=values)


def one_name_for_all() -> Case:
    """Names of C, of math.h, of helpers, of vector types, of accumulators, and axes that are no identifiers."""
    a, b = te.placeholder((6, 4), name="acc0_0"), te.placeholder((4, 16), name="f32x8", constant=True)
    r = te.reduce_axis((0, 4), name="r.x")
    c = te.compute((6, 16), lambda task, j: te.sum(a[task, r] * b[r, j], axis=r), name="max_f32")
    d = te.compute((6, 16), lambda i, expf: te.max(c[i, expf], 0.0) + te.exp(te.min(c[i, expf], 0.0)), name="NAN")
    return case_of([a, b, d, te.compute((6, 16), lambda i, j: d[i, j] + te.floormod(i - 3, 2).astype("float32"), name="expf")])


def axes_named_like_parts() -> Case:
    """An axis that has the name which splitting, or fusing, gives to parts of another."""
    a, b = te.placeholder((4, 16), name="a"), te.placeholder((16, 8), name="b")
    r, s = te.reduce_axis((0, 16), name="i_0"), te.reduce_axis((0, 4), name="i0")
    c = te.compute((4, 8), lambda i, i_1: te.sum(a[i, r] * b[r, i_1], axis=r), name="c")
    d = te.compute((4,), lambda i: te.sum(a[i, r] * 2.0, axis=r), name="d")
    return case_of([a, b, c, d, te.compute((), lambda: te.sum(a[s, r], axis=[r, s]), name="e")])


MOST = 60  # programs of one corner
CORNERS: tuple[Corner, ...] = (
    narrow_choice, narrow_choice_everywhere, condition_everywhere, bool_from_lanes, narrow_products, short_products, second_half_of_a_condition,
    second_half_in_lanes, guarded_division, guarded_range, own_place_read_by_index, index_that_wraps, numbers_beyond_float, great_integers, single_elements,
    late_start, negative_quotients, infinities_and_nan, one_name_for_all, axes_named_like_parts,
)  # fmt: skip


def programs(corner: Corner, number: int) -> list[Program]:
    case = corner()
    draw = seeded_draw(number)
    found = []
    for target in TARGETS[number % 2 :: 2]:
        for sketch in sketches(case, target):
            row = tuple(draw.integer(0, int(size) - 1) for size in sketch.sizes)
            found.append(Program(case, sketch, row, target, "program"))
    return found


@pytest.mark.filterwarnings("ignore")  # arithmetic that wraps, on purpose
@pytest.mark.parametrize("corner", CORNERS, ids=lambda corner: corner.__name__)
def test_corner(corner: Corner, bench: Bench) -> None:
    found = (programs(corner, 0) + programs(corner, 1))[:MOST]
    for program in found:
        assert not interpreted(program), str(program)
    for program, problem in zip(found, bench.problems(found), strict=True):
        assert not problem, f"{problem}\n{program}\n{program.source.text}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not sanitizer_compiler(), reason="no gcc with sanitizers here")
def test_corners_under_sanitizers(tmp_path: Path) -> None:
    found = [program for number, corner in enumerate(CORNERS) for program in programs(corner, number)[:8]]
    for program, problem in zip(found, sanitized_problems(found, tmp_path, sanitizer_compiler()), strict=True):
        assert not problem, f"{problem}\n{program}\n{program.source.text}"
