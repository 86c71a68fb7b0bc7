"""The text of generated C: what a person reads, and what the caller is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ansor import te
from ansor.codegen.dialect import PRELUDE
from ansor.codegen.generate import Machine, generate
from ansor.codegen.source import CSource
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeAt, Fuse, Parallel, PragmaUnroll, Reorder, Split, Step, Unroll, Vectorize
from ansor.te.tensor import Tensor


def matmul() -> list[Tensor]:
    a, b = te.placeholder((4, 6), name="a"), te.placeholder((6, 8), name="b")
    r = te.reduce_axis((0, 6), name="r")
    return [a, b, te.compute((4, 8), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")]


def relu(n: int = 11) -> list[Tensor]:
    x = te.placeholder((3, n), name="x")
    return [x, te.compute((3, n), lambda i, j: te.max(x[i, j], 0.0), name="y")]


NARROW = Machine(16, 1)


def written(tensors: list[Tensor], *steps: Step, machine: Machine = NARROW, entry: str = "kernel") -> CSource:
    return generate(Sketch(Dag(tensors), steps).lower_row(()), machine, entry)


def body(source: CSource) -> str:
    """The text behind the prelude."""
    return source.text.partition(PRELUDE)[2].strip()


TILE = """\
typedef float f32x4 __attribute__((vector_size(16), aligned(4), may_alias));

static void tile_nest0(const float *restrict a, const float *restrict b, float *restrict c, long begin, long end) {
  for (long task = begin; task < end; ++task) {
    const long c_i_0 = task;
    {
      f32x4 acc0_0 = (f32x4){};
      f32x4 acc0_1 = (f32x4){};
      f32x4 acc0_2 = (f32x4){};
      f32x4 acc0_3 = (f32x4){};
      ANSOR_UNROLL(4)
      for (long c_r = 0; c_r < 6; ++c_r) {
        const float in0_0 = a[c_i_0 * 12 + c_r];
        const f32x4 in0_1 = *(const f32x4 *)&b[c_r * 8];
        acc0_0 = acc0_0 + (in0_0 * in0_1);
        const f32x4 in0_2 = *(const f32x4 *)&b[c_r * 8 + 4];
        acc0_1 = acc0_1 + (in0_0 * in0_2);
        const float in0_3 = a[c_i_0 * 12 + c_r + 6];
        acc0_2 = acc0_2 + (in0_3 * in0_1);
        acc0_3 = acc0_3 + (in0_3 * in0_2);
      }
      *(f32x4 *)&c[c_i_0 * 16] = acc0_0;
      *(f32x4 *)&c[c_i_0 * 16 + 4] = acc0_1;
      *(f32x4 *)&c[c_i_0 * 16 + 8] = acc0_2;
      *(f32x4 *)&c[c_i_0 * 16 + 12] = acc0_3;
    }
  }
}

struct tile_nest0_task { const float *a; const float *b; float *c; };
static void tile_nest0_body(void *ctx, long begin, long end) {
  const struct tile_nest0_task *t = ctx;
  tile_nest0(t->a, t->b, t->c, begin, end);
}

void tile(void *const *args, unsigned char *workspace, ansor_parallel_for_t parallel_for, void *pool) {
  const float *a = args[0];
  const float *b = args[1];
  float *c = args[2];
  struct tile_nest0_task tile_nest0_task = {a, b, c};
  parallel_for(pool, tile_nest0_body, &tile_nest0_task, 2);
  (void)workspace;
}"""


def test_a_register_tile_in_a_parallel_loop() -> None:
    """Accumulators in vectors across the reduction, each element read once."""
    steps = (Split("c", "i", (2,), 2), Reorder("c", ("i_0", "r", "i_1", "j")), Vectorize("c", "j", 1), PragmaUnroll("c", 16), Parallel("c", 1))
    source = written(matmul(), *steps, machine=Machine(16, 2), entry="tile")
    assert body(source) == TILE
    assert (source.threads, source.workspace_bytes) == (2, 0)
    assert "parallel_for(pool" not in written(matmul(), *steps).text, "one thread: no pool"


VECTORS = """\
  for (long y_i = 0; y_i < 3; ++y_i) {
    *(f32x4 *)&y[y_i * 11] = max_f32x4(*(const f32x4 *)&x[y_i * 11], (f32x4){});
    *(f32x4 *)&y[y_i * 11 + 4] = max_f32x4(*(const f32x4 *)&x[y_i * 11 + 4], (f32x4){});
    *(f32x2 *)&y[y_i * 11 + 8] = max_f32x2(*(const f32x2 *)&x[y_i * 11 + 8], (f32x2){});
    y[y_i * 11 + 10] = max_f32(x[y_i * 11 + 10], 0.0f);
  }"""


def test_whole_vectors_then_halves_then_single_elements() -> None:
    assert VECTORS in written(relu(), Vectorize("y", "j", 1)).text
    looped = written(relu(50), Vectorize("y", "j", 1)).text
    assert "for (long y_j = 0; y_j < 48; y_j += 4) {" in looped, "more than a few vectors are a loop"
    assert "f32x2 *)&y[y_i * 50 + 48]" in looped


PADDING = """\
    if (((int)(p_i) < 2)) {
      p[p_i * 13] = 0.0f;
      *(f32x4 *)&p[p_i * 13 + 1] = *(const f32x4 *)&x[p_i * 11];
      *(f32x4 *)&p[p_i * 13 + 5] = *(const f32x4 *)&x[p_i * 11 + 4];
      *(f32x2 *)&p[p_i * 13 + 9] = *(const f32x2 *)&x[p_i * 11 + 8];
      p[p_i * 13 + 11] = x[p_i * 11 + 10];
      p[p_i * 13 + 12] = 0.0f;
    }
    else {
      *(f32x4 *)&p[p_i * 13] = (f32x4){};"""

CUT_PADDING = """\
      long p_j_1_low0 = 0, p_j_1_high1 = 5;
      if (p_j_0 * (-5) + 1 > p_j_1_low0) p_j_1_low0 = p_j_0 * (-5) + 1;
      if (p_j_0 * (-5) + 14 < p_j_1_high1) p_j_1_high1 = p_j_0 * (-5) + 14;
      if (p_j_1_low0 > 5) p_j_1_low0 = 5;
      if (p_j_1_high1 < p_j_1_low0) p_j_1_high1 = p_j_1_low0;
      if (p_j_1_low0 == 0 && p_j_1_high1 == 5) {
        *(f32x4 *)&p[p_i * 15 + p_j_0 * 5]"""


def padded(n: int, *conditions: Callable[[te.Expr, te.Expr], te.Expr]) -> list[Tensor]:
    x = te.placeholder((3, n - 2), name="x")
    return [x, te.compute((3, n), lambda i, j: te.if_then_else(te.all(*(test(i, j) for test in conditions)), x[i, j - 1], 0.0), name="p")]


def test_a_padding_is_written_beside_what_it_surrounds() -> None:
    tensors = padded(13, lambda i, j: i < 2, lambda i, j: j >= 1, lambda i, j: j < 12)
    assert PADDING in written(tensors, Vectorize("p", "j", 1)).text


def test_a_padding_of_a_cut_row_has_a_range_instead_of_tests() -> None:
    text = written(padded(15, lambda i, j: j >= 1, lambda i, j: j < 14), Split("p", "j", (5,), 2), Vectorize("p", "j_1", 1)).text
    assert CUT_PADDING in text and "p[p_i * 15 + p_j_0 * 5 + p_j_1] = x[p_i * 13 + p_j_0 * 5 + p_j_1 - 1];" in text


def test_a_row_that_may_end_anywhere_is_vectors_where_it_is_whole() -> None:
    x = te.placeholder((29,), name="x")
    y = te.compute((29,), lambda i: x[i] * 2.0, name="y")
    z = te.compute((27,), lambda i: y[i] + y[i + 1] + y[i + 2], name="z")
    text = written([x, z], Split("z", "i", (9,), 2), Split("z", "i_0", (2,), 2), ComputeAt("y", "z", "i_0_1"), Vectorize("y", "i", 1)).text
    assert "if (z_i_0_0 * 18 + z_i_0_1 * 9 < 19) {" in text and "*(f32x4 *)&y[" in text
    assert "long y_i_end0 = 11;" in text and "if (29 - (z_i_0_0 * 18 + z_i_0_1 * 9) < y_i_end0)" in text


def test_two_loops_of_an_axis_that_does_not_divide_leave_a_smaller_tile() -> None:
    steps = (Split("c", "i", (2, 3), 3), Split("c", "j", (8,), 2), Reorder("c", ("i_0", "j_0", "r", "i_1", "i_2", "j_1")), Vectorize("c", "j_1", 1))
    text = written(matmul(), *steps).text
    assert "acc0_0" in text and text.index("for (long c_i_1 = 0; c_i_1 < 2; ++c_i_1)") < text.index("for (long c_r = 0;")


def test_intermediates_lie_apart_in_the_workspace() -> None:
    x = te.placeholder((5,), name="x")
    first = te.compute((5,), lambda i: te.exp(x[i]), name="first")
    second = te.compute((5,), lambda i: te.exp(first[i]), name="second")
    source = written([x, te.compute((5,), lambda i: second[i] + first[4 - i], name="out")])
    assert "float *first = (void *)(workspace + 0);" in source.text
    assert "float *second = (void *)(workspace + 64);" in source.text
    assert source.workspace_bytes == 128


def test_a_tile_lives_inside_its_loop() -> None:
    x, y = relu()
    z = te.compute((3, 11), lambda i, j: y[i, j] * 2.0, name="z")
    source = written([x, z], ComputeAt("y", "z", "i"))
    assert "    float y[11] __attribute__((aligned(64)));" in source.text
    assert source.workspace_bytes == 0


@pytest.mark.parametrize(("entry", "symbol"), [("kernel", "kernel"), ("gamma", "gamma_kernel"), ("fmaxf", "fmaxf_kernel"), ("gammas", "gammas")])
def test_no_entry_is_a_function_of_the_library(entry: str, symbol: str) -> None:
    source = written(relu(), entry=entry)
    assert source.entry == symbol
    assert f"void {symbol}(void *const *args" in source.text


def test_the_same_program_is_the_same_text() -> None:
    assert written(matmul(), PragmaUnroll("c", 16)).text == written(matmul(), PragmaUnroll("c", 16)).text


REDUCED = """\
  for (long y_i = 0; y_i < 3; ++y_i) {
    {
      f32x4 acc0_0 = (f32x4){};
      f32x4 acc0_1 = (f32x4){};
      f32x4 acc0_2 = (f32x4){};
      f32x4 acc0_3 = (f32x4){};
      f32x2 acc0_by2 = (f32x2){};
      float acc0_by1 = 0.0f;
      for (long y_r = 0; y_r < 32; y_r += 16) {
        acc0_0 = acc0_0 + *(const f32x4 *)&x[y_i * 43 + y_r];
        acc0_1 = acc0_1 + *(const f32x4 *)&x[y_i * 43 + y_r + 4];
        acc0_2 = acc0_2 + *(const f32x4 *)&x[y_i * 43 + y_r + 8];
        acc0_3 = acc0_3 + *(const f32x4 *)&x[y_i * 43 + y_r + 12];
      }
      acc0_0 = acc0_0 + *(const f32x4 *)&x[y_i * 43 + 32];
      acc0_1 = acc0_1 + *(const f32x4 *)&x[y_i * 43 + 36];
      acc0_by2 = acc0_by2 + *(const f32x2 *)&x[y_i * 43 + 40];
      acc0_by1 = (acc0_by1 + x[y_i * 43 + 42]);
      acc0_0 = acc0_0 + acc0_1;
      acc0_2 = acc0_2 + acc0_3;
      acc0_0 = acc0_0 + acc0_2;
      f32x2 fold0_2 = *(const f32x2 *)&acc0_0 + *((const f32x2 *)&acc0_0 + 1);
      fold0_2 = fold0_2 + acc0_by2;
      float fold0_1 = (fold0_2[0] + fold0_2[1]);
      fold0_1 = (fold0_1 + acc0_by1);
      y[y_i] = fold0_1;
    }
  }
"""


def test_a_reduction_along_vectors() -> None:
    """Four vectors of partial results, narrower ones for the tail, all combined at the end."""
    x, r = te.placeholder((3, 43), name="x"), te.reduce_axis((0, 43), name="r")
    tensors = [x, te.compute((3,), lambda i: te.sum(x[i, r], axis=r), name="y")]
    assert REDUCED in written(tensors, Vectorize("y", "r", 1)).text
    assert "f32x4" not in written(tensors, Vectorize("y", "r", 0)).text


TOGETHER = """\
      for (long c_k = 0; c_k < 32; c_k += 16) {
        const f32x4 in1_0 = *(const f32x4 *)&a[c_k];
        const f32x4 in1_1 = *(const f32x4 *)&b[c_j_0 * 64 + c_k];
        acc0_0_0 = acc0_0_0 + (in1_0 * in1_1);
        const f32x4 in1_2 = *(const f32x4 *)&b[c_j_0 * 64 + c_k + 32];
        acc0_1_0 = acc0_1_0 + (in1_0 * in1_2);
"""


def test_two_elements_reduced_along_vectors_share_what_they_load() -> None:
    """Four vectors of partial results each, so that eight are in flight."""
    a, b = te.placeholder((1, 32), name="a"), te.placeholder((6, 32), name="b")
    steps = (Split("c", "j", (2,), 2), Reorder("c", ("i", "j_0", "j_1", "k")), Unroll("c", "j_1"), Vectorize("c", "k", 1))
    text = written([a, b, te.nn.dense(a, b, name="c")], *steps).text
    assert TOGETHER in text and text.count("f32x4 acc0_") == 8


def test_a_block_reduced_as_one_loop_is_read_in_vectors() -> None:
    x = te.placeholder((3, 5, 7, 3), name="x")
    r, q, p = te.reduce_axis((0, 5), name="r"), te.reduce_axis((0, 7), name="q"), te.reduce_axis((0, 3), name="p")
    tensors = [x, te.compute((3,), lambda i: te.max(x[i, r, q, p], axis=[r, q, p]), name="y")]
    text = written(tensors, Fuse("y", ("r", "q", "p")), Vectorize("y", "r_q_p_f", 1)).text
    assert "acc0_1 = max_f32x4(acc0_1, *(const f32x4 *)&x[y_i * 105 + y_r_q_p_f + 4]);" in text and "%" not in text.partition("nest0")[2]
