"""Generated C as text: what a person reads, and what must be in it."""

from ansor import te
from ansor.codegen.generate import Machine, chunks, generate
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Pack, Parallel, PragmaUnroll, Reorder, Split, Unroll, Vectorize
from ansor.te.tensor import Tensor

TILE = """\
static void dense_nest0(const float *restrict x, const float *restrict w, float *restrict y) {
  for (long y_j_0 = 0; y_j_0 < 2; ++y_j_0) {
    {
      f32x8 acc0_0 = (f32x8){};
      f32x8 acc0_1 = (f32x8){};
      ANSOR_UNROLL(6)
      for (long y_r = 0; y_r < 6; ++y_r) {
        const float in0_0 = x[y_r];
        const f32x8 in0_1 = *(const f32x8 *)&w[y_j_0 * 48 + y_r * 8];
        acc0_0 = acc0_0 + (in0_0 * in0_1);
        const float in0_2 = x[y_r + 6];
        acc0_1 = acc0_1 + (in0_2 * in0_1);
      }
      *(f32x8 *)&y[y_j_0 * 8] = acc0_0;
      *(f32x8 *)&y[y_j_0 * 8 + 16] = acc0_1;
    }
  }
}
"""

HEADING = """\
/* dense(args, workspace, parallel_for, pool)
 *   args[0]  input    x: float32[2, 6]
 *   args[1]  constant w: float32[6, 16], stored as [2, 6, 8]
 *   args[2]  output   y: float32[2, 16]
 *   workspace: 0 bytes; every buffer is aligned to 64 bytes
 */
"""


def dense() -> list[Tensor]:
    x, w = te.placeholder((2, 6), name="x"), te.placeholder((6, 16), name="w", constant=True)
    r = te.reduce_axis((0, 6), name="r")
    return [x, w, te.compute((2, 16), lambda i, j: te.sum(x[i, r] * w[r, j], axis=r), name="y")]


def tiled() -> Sketch:
    return Sketch(Dag(dense())).then(
        Pack("y", "w"), Split("y", "j", (8,), 2), Reorder("y", ("j_0", "r", "i", "j_1")), PragmaUnroll("y", 16), Vectorize("y", "j_1")
    )


def test_a_register_tile_reads_each_element_once_and_holds_its_accumulators() -> None:
    text = generate(tiled().lower_row((), "dense"), Machine(32, 1)).text
    assert TILE in text
    assert text.startswith(HEADING)


def test_narrow_vectors_cut_the_tile_into_more_of_them() -> None:
    text = generate(tiled().lower_row((), "dense"), Machine(16, 1)).text
    assert "acc0_3" in text
    assert "f32x8" not in text


def test_parallel_loops_become_a_function_over_a_range() -> None:
    sketch = tiled().then(Parallel("y", 1))
    source = generate(sketch.lower_row((), "dense"), Machine(32, 2))
    assert source.threads == 2
    assert "parallel_for(pool, dense_nest0_body, &dense_nest0_task, 2);" in source.text
    alone = generate(sketch.lower_row((), "dense"), Machine(32, 1))
    assert alone.threads == 1
    assert "parallel_for(pool" not in alone.text


def test_a_loop_to_unroll_says_so() -> None:
    sketch = Sketch(Dag(dense())).then(Unroll("y", "i"))
    assert "ANSOR_UNROLL(2)\n  for (long y_i" in generate(sketch.lower_row((), "dense"), Machine(32, 1)).text


def test_tails_are_halves() -> None:
    assert chunks(23, 8) == [(0, 8), (8, 8), (16, 4), (20, 2), (22, 1)]
    assert chunks(3, 1) == [(0, 1), (1, 1), (2, 1)]
