"""Transposing copies in square blocks, and every second element: text, odd lengths, edges, paddings, several widths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor import te
from ansor.codegen.generate import Machine, generate
from ansor.codegen.patterns.transposed_copy import LEAST, blocks
from ansor.ir.dag import Dag
from ansor.measure.kernel import build_kernels
from ansor.measure.result_memory import aligned_empty
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import CacheWrite, ComputeAt, Fuse, PackInside, Parallel, Reorder, Split, Step, Vectorize
from ansor.targets.base import parse_target
from ansor.te.tensor import Tensor
from tests.programs import Bench, Program, case_of, interpreted, sanitized_problems, sanitizer_compiler

Steps = Sequence[Step]


def turned(n: int, m: int, epilogue: Callable[[te.Expr], te.Expr] = lambda value: value, dtype: str = "float32") -> list[Tensor]:
    x = te.placeholder((m, n), name="x", dtype=dtype)
    return [x, te.compute((n, m), lambda i, j: epilogue(x[j, i]), name="y")]


def written(tensors: list[Tensor], *steps: Step, vector_bytes: int = 16) -> str:
    return generate(Sketch(Dag(tensors), steps).lower_row(()), Machine(vector_bytes, 1), "kernel").text


ALONG = Vectorize("y", "j")

TURNED = """\
static inline void interleave_f32x4(f32x4 *a, f32x4 *b) { const f32x4 x = *a, y = *b; *a = ANSOR_SHUFFLE(i32x4, x, y, 0, 4, 1, 5); \
*b = ANSOR_SHUFFLE(i32x4, x, y, 2, 6, 3, 7); }
static inline void transpose_f32x4(f32x4 *v) { interleave_f32x4(v + 0, v + 2); interleave_f32x4(v + 1, v + 3); interleave_f32x4(v + 0, v + 1); \
interleave_f32x4(v + 2, v + 3); }

static void kernel_nest0(const float *restrict x, float *restrict y) {
  {
    f32x4 block0[4];
    block0[0] = *(const f32x4 *)&x[0];
    block0[1] = *(const f32x4 *)&x[5];
    block0[2] = *(const f32x4 *)&x[10];
    block0[3] = *(const f32x4 *)&x[15];
    transpose_f32x4(block0);
    *(f32x4 *)&y[0] = block0[0];
    *(f32x4 *)&y[4] = block0[1];
    *(f32x4 *)&y[8] = block0[2];
    *(f32x4 *)&y[12] = block0[3];
  }
  {
    f32x4 block1[4];
    block1[0] = *(const f32x4 *)&x[1];
    block1[1] = *(const f32x4 *)&x[6];
    block1[2] = *(const f32x4 *)&x[11];
    block1[3] = *(const f32x4 *)&x[16];
    transpose_f32x4(block1);
    *(f32x4 *)&y[4] = block1[0];
    *(f32x4 *)&y[8] = block1[1];
    *(f32x4 *)&y[12] = block1[2];
    *(f32x4 *)&y[16] = block1[3];
  }
}
"""


def test_five_rows_are_two_blocks_of_four() -> None:
    assert TURNED in written(turned(5, 4), ALONG)


def test_long_loops_are_loops_over_blocks() -> None:
    text = written(turned(40, 1000), ALONG, vector_bytes=64)
    assert "for (long y_i_block0 = 0; y_i_block0 < 32; y_i_block0 += 16) {" in text
    assert "for (long y_j_block1 = 0; y_j_block1 < 992; y_j_block1 += 16) {" in text
    assert "block2[3] = *(const f32x16 *)&x[y_j_block1 * 40 + y_i_block0 + 120];" in text
    assert "*(f32x16 *)&y[y_i_block0 * 1000 + y_j_block1 + 3000] = block2[3];" in text


@given(st.integers(LEAST, 300), st.sampled_from([4, 8, 16]))
def test_blocks_cover_every_iteration_and_no_other(extent: int, widest: int) -> None:
    found = blocks(extent, widest)
    assert {k for begin, end, _ in found for k in range(begin, end)} == set(range(extent))
    assert all(end > begin and (end - begin) % lanes == 0 and LEAST <= lanes <= widest for begin, end, lanes in found)


@given(st.integers(1, 75), st.sampled_from([4, 8, 16]))
def test_blocks_that_store_once_are_next_to_each_other(fours: int, widest: int) -> None:
    found = blocks(fours * LEAST, widest, once=True)
    assert [place for begin, end, _ in found for place in range(begin, end)] == list(range(fours * LEAST))
    assert all((end - begin) % lanes == 0 and LEAST <= lanes <= widest for begin, end, lanes in found)


STRIPS = """\
  for (long task = begin; task < end; ++task) {
    const long y_i_first = task * 4;
    {
      f32x4 block0[4];
      block0[0] = *(const f32x4 *)&x[y_i_first];
      block0[1] = *(const f32x4 *)&x[y_i_first + 40];
"""


def test_threads_share_strips_of_blocks() -> None:
    def shared(rows: int, vector_bytes: int = 16) -> str:
        return generate(Sketch(Dag(turned(rows, 4)), (ALONG, Parallel("y", 1))).lower_row(()), Machine(vector_bytes, 2), "kernel").text

    assert STRIPS in shared(40)
    assert "&kernel_nest0_task, 10);" in shared(40)
    assert "task * 8;" in shared(40, 64), "strips of 16 do not divide the rows"
    assert "task * 8;" in shared(48, 64), "three strips of 16 are too few for two threads"
    assert "transpose" not in shared(41)


def padded(n: int, m: int, rows: int, columns: int, epilogue: Callable[[te.Expr], te.Expr] = lambda value: value) -> list[Tensor]:
    """`turned(n, m)` with zeros around it: two before, others behind."""
    x, _ = turned(n, m)

    def value(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.if_then_else(te.all(i >= 2, i < n + 2, j >= 2, j < m + 2), epilogue(x[j - 2, i - 2]), 0.0)

    return [x, te.compute((rows, columns), value, name="y")]


def test_a_block_is_inside_a_padding_when_its_corners_are() -> None:
    text = written(padded(9, 13, 16, 17), ALONG)
    assert "if (y_i_block0 * (-1) + 2 <= 0 && y_i_block0 - 8 < 0 && y_j_block1 * (-1) + 2 <= 0 && y_j_block1 - 12 < 0) {" in text
    assert "y[y_i * 17 + y_j] = (" in text, "elsewhere element by element"


def scaled(n: int, h: int, w: int) -> list[Tensor]:
    """What a convolution's tile becomes: another order, bias along one loop, a residual along the other."""
    x, bias, residual = te.placeholder((h, w, n), name="x"), te.placeholder((n,), name="bias"), te.placeholder((n, h, w), name="residual")
    return [x, bias, residual, te.compute((n, h, w), lambda i, k, j: te.max(x[k, j, i] + bias[i] + residual[i, k, j], 0.0), name="y")]


def reversed_columns(n: int, m: int) -> list[Tensor]:
    x, _ = turned(n, m)
    return [x, te.compute((n, m), lambda i, j: x[m - 1 - j, i], name="y")]


def guarded(n: int, m: int) -> list[Tensor]:
    """An array whose elements may only be read where another says so."""
    x, flags = te.placeholder((m + 1, n), name="x"), te.placeholder((m,), name="flags", dtype="int32")
    return [x, flags, te.compute((n, m), lambda i, j: te.if_then_else(flags[j] < m, x[j, i], 0.0) * 2.0, name="y")]


def conditional(n: int, m: int) -> list[Tensor]:
    """A choice inside the value guards what is not there."""
    x, _ = turned(n, m)
    return [x, te.compute((n, m + 1), lambda i, j: te.if_then_else(j < m, x[j, i], 0.0) * 2.0, name="y")]


@pytest.mark.parametrize(("tensors", "steps"), [
    (reversed_columns(8, 8), [ALONG]),
    (conditional(8, 8), [ALONG]),
    (turned(3, 8), [ALONG]),
    (turned(8, 3), [ALONG]),
    (turned(8, 8), []),
    (turned(8, 8, dtype="int8"), [ALONG]),
    (turned(8, 8, lambda value: value), [Fuse("y", ("i", "j")), Vectorize("y", "i_j_f")]),
], ids=["backwards", "guarded", "few rows", "few columns", "no vectors", "bytes", "fused"])  # fmt: skip
def test_anything_else_is_written_as_before(tensors: list[Tensor], steps: Steps) -> None:
    assert "transpose_" not in written(tensors, *steps)


def second(n: int, dtype: str = "float32") -> list[Tensor]:
    x = te.placeholder((2 * n - 1,), name="x", dtype=dtype)
    return [x, te.compute((n,), lambda j: x[2 * j], name="y")]


SECOND = """\
static inline f32x4 every_second_f32x4(const float *p) { const f32x4 a = *(const f32x4 *)p, b = *(const f32x4 *)(p + 3); \
return ANSOR_SHUFFLE(i32x4, a, b, 0, 2, 5, 7); }

static void kernel_nest0(const float *restrict x, float *restrict y) {
  *(f32x4 *)&y[0] = every_second_f32x4(&x[0]);
  *(f32x4 *)&y[4] = every_second_f32x4(&x[8]);
  *(f32x2 *)&y[8] = (f32x2){x[16], x[18]};
}
"""


def test_every_second_element_is_two_loads() -> None:
    assert SECOND in written(second(10), ALONG)
    assert "every_second" not in written(second(10, "int8"), ALONG)


def dense(n: int, m: int, k: int) -> list[Tensor]:
    a, b, r = te.placeholder((n, k), name="a"), te.placeholder((m, k), name="b"), te.reduce_axis((0, k), name="r")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[j, r], axis=r), name="y")]


def packed(tile: int, step: int) -> list[Step]:
    """`dense` with its second operand transposed inside the kernel, by tiles of `tile` columns and `step` of the reduction."""
    order = Reorder("y", ("j_0", "r_0", "i", "r_1", "j_1"))
    return [PackInside("y", "b"), Split("y", "j", (tile,), 2), Split("y", "r", (step,), 2), order, Vectorize("y", "j_1")]


def copied(n: int, h: int, w: int, tiles: tuple[int, int]) -> tuple[list[Tensor], list[Step]]:
    """A matrix product per row that is computed in a private tile with `n` innermost and copied out with `w` innermost; tiles may not divide."""
    x, weight, r = te.placeholder((h, 3, w), name="x"), te.placeholder((3, n), name="weight"), te.reduce_axis((0, 3), name="r")
    tensors = [x, weight, te.compute((n, h, w), lambda i, k, j: te.sum(x[k, r, j] * weight[r, i], axis=r), name="y")]
    steps: list[Step] = [CacheWrite("y"), Split("y", "i", (tiles[0],), 2), Split("y", "j", (tiles[1],), 2), Reorder("y", ("i_0", "k", "j_0", "i_1", "j_1"))]
    return tensors, [*steps, Reorder("y_local", ("k", "j", "r", "i")), ComputeAt("y_local", "y", "j_0"), Vectorize("y_local", "i"), Vectorize("y", "j_1")]


TARGETS = [parse_target(text) for text in ("cpu -mcpu=x86-64 -threads=2", "cpu -mcpu=haswell -threads=1", "cpu -mcpu=x86-64-v4 -threads=2")]


def cases() -> list[tuple[list[Tensor], Steps]]:
    found: list[tuple[list[Tensor], Steps]] = []
    found += [(turned(n, m), [ALONG]) for n, m in ((5, 4), (7, 31), (17, 33), (9, 70))]
    found += [(turned(n, m, lambda value: te.exp(value) + value, dtype), [ALONG]) for n, m, dtype in ((19, 12, "float32"), (9, 11, "float64"))]
    found += [(turned(13, 22, lambda value: value * 3, "int32"), [ALONG]), (scaled(20, 3, 19), [ALONG]), (scaled(7, 2, 50), [ALONG])]
    found += [(turned(n, m), [ALONG, Parallel("y", 1)]) for n, m in ((40, 7), (41, 9), (64, 23))]
    found += [(scaled(36, 3, 19), [ALONG, Parallel("y", 1)]), (padded(30, 9, 36, 14), [ALONG, Parallel("y", 1)])]
    found += [(padded(n, m, rows, columns), [ALONG]) for n, m, rows, columns in ((9, 13, 16, 17), (30, 41, 34, 45), (5, 5, 4, 12))]
    tiled = Reorder("y", ("i_0", "j_0", "i_1", "j_1"))
    for tile, other in ((4, 6), (16, 7), (24, 24)):
        found.append((turned(29, 43), [Split("y", "i", (tile,), 2), Split("y", "j", (other,), 2), tiled, Vectorize("y", "j_1")]))
        found.append((padded(23, 35, 29, 43), [Split("y", "i", (tile,), 2), Split("y", "j", (other,), 2), tiled, Vectorize("y", "j_1")]))
        found.append(copied(19, 2, 21, (tile, other)))
    found += [(dense(3, m, k), packed(tile, step)) for m, k, tile, step in ((40, 30, 16, 12), (19, 33, 32, 16), (64, 8, 8, 4))]
    found += [(reversed_columns(9, 9), [ALONG]), (conditional(9, 9), [ALONG]), (guarded(9, 9), [ALONG])]
    found += [(second(n, dtype), [ALONG]) for n in (7, 45) for dtype in ("float32", "int32", "float64", "int8")]
    return found


def programs() -> list[list[Program]]:
    """Every case for every target, in three parts that have every case for one of them."""
    found: list[list[Program]] = [[], [], []]
    for number, (tensors, steps) in enumerate(cases()):
        case, sketch = case_of(tensors), Sketch(Dag(tensors), tuple(steps))
        for k, target in enumerate(TARGETS):
            found[(number + k) % 3].append(Program(case, sketch, (), target, "program"))
    return found


def check(found: list[Program], problems: list[str]) -> None:
    for program, problem in zip(found, problems, strict=True):
        assert not problem, f"{problem}\n{program}\n{program.source.text}"


@pytest.mark.compiler
def test_copies_equal_numpy(bench: Bench, shipped: Bench) -> None:
    first, second, third = programs()
    found = [*first, *second, *third]
    assert sum("transpose_" in program.source.text for program in found) > len(found) // 2
    for program in first:
        assert not interpreted(program), str(program)
    check(found, bench.problems(found))
    check(second, shipped.problems(second))


@pytest.mark.compiler
@pytest.mark.skipif(not sanitizer_compiler(), reason="no gcc with sanitizers here")
def test_copies_stay_inside_their_arrays(tmp_path: Path) -> None:
    _, _, found = programs()
    check(found, sanitized_problems(found, tmp_path, sanitizer_compiler()))


def added(n: int, m: int) -> list[Tensor]:
    """Sums in another order as bytes, after bytes were added to them."""
    sums, before = te.placeholder((m, n), name="sums", dtype="int32"), te.placeholder((n, m), name="before", dtype="int8")
    return [sums, before, te.compute((n, m), lambda i, j: te.max(te.min(sums[j, i] + before[i, j].astype("int32"), 127), -128).astype("int8"), name="y")]


@pytest.mark.compiler
@pytest.mark.parametrize(("n", "m", "blocked"), [(16, 20, True), (28, 12, True), (44, 36, True), (9, 12, False), (12, 21, False)])
@pytest.mark.parametrize("steps", [[ALONG], [ALONG, Parallel("y", 1)]], ids=["one thread", "threads"])
def test_bytes_are_added_to_in_place(n: int, m: int, blocked: bool, steps: Steps) -> None:
    tensors, rng = added(n, m), np.random.default_rng(n)
    code = generate(Sketch(Dag(tensors), tuple(steps)).lower_row(()), Machine(64, 2), "kernel")
    assert ("transpose_" in code.text) is blocked
    text = code.text.replace("*restrict before", "*before").replace("*restrict y", "*y")
    (kernel,) = build_kernels([replace(code, text=text)])
    sums, before = aligned_empty((m, n), "int32"), aligned_empty((n, m), "int8")
    sums[...], before[...] = rng.integers(-90, 90, (m, n)), rng.integers(-90, 90, (n, m))
    wanted = np.clip(np.add(sums.T, before, dtype=np.int32), -128, 127).astype(np.int8)
    kernel.run_pointers([sums.ctypes.data, before.ctypes.data, before.ctypes.data])
    np.testing.assert_array_equal(before, wanted)
