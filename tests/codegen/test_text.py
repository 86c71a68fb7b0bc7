"""The text of generated C: what a person reads, and what the caller is told."""

from __future__ import annotations

import pytest

from ansor import te
from ansor.codegen.dialect import PRELUDE
from ansor.codegen.generate import Machine, generate
from ansor.codegen.source import CSource
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeAt, Parallel, PragmaUnroll, Reorder, Split, Step, Vectorize
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
    long p_j_low0 = 0, p_j_high1 = 13;
    if (1 > p_j_low0) p_j_low0 = 1;
    if (12 < p_j_high1) p_j_high1 = 12;
    if (p_j_low0 > 13) p_j_low0 = 13;
    if (p_j_high1 < p_j_low0 || !(((int)(p_i) < 2))) p_j_high1 = p_j_low0;"""


def test_a_padding_has_a_range_instead_of_tests() -> None:
    x, _ = relu()
    p = te.compute((3, 13), lambda i, j: te.if_then_else(te.all(i < 2, j >= 1, j < 12), x[i, j - 1], 0.0), name="p")
    text = written([x, p], Vectorize("p", "j", 1)).text
    assert PADDING in text
    assert "p[p_i * 13 + p_j] = x[p_i * 11 + p_j - 1];" in text


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
