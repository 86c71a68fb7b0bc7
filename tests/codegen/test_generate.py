"""Generated C as text: what a person reads, and what must be in it."""

from ansor import te
from ansor.codegen.chunks import chunks, divided, whole_first
from ansor.codegen.dialect import Dialect
from ansor.codegen.generate import PASSES, Machine, draft_of, generate
from ansor.ir.dag import Dag
from ansor.ir.passes import traced
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import CacheWrite, ComputeAt, Pack, PackInside, Parallel, PragmaUnroll, Reorder, Split, Unroll, Vectorize
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


def test_parts_are_whole_or_equal() -> None:
    assert whole_first(40, 16) == [(0, 16), (16, 16), (32, 8)]
    assert divided(40, 16) == [(0, 14), (14, 14), (28, 12)]
    assert divided(28, 16) == [(0, 14), (14, 14)]
    assert divided(5, 16) == [(0, 5)]


def uneven() -> Sketch:
    """Rows in threes of seven, columns in eights of twelve; the second operand packed, so that the last eight are computed whole."""
    a, b = te.placeholder((7, 6), name="a"), te.placeholder((6, 12), name="b")
    r = te.reduce_axis((0, 6), name="r")
    c = te.compute((7, 12), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")
    return Sketch(Dag([a, b, c])).then(
        CacheWrite("c"), PackInside("c_local", "b"), Split("c_local", "i", (3,), 2), Split("c_local", "j", (8,), 2),
        Reorder("c_local", ("i_0", "j_0", "r", "i_1", "j_1")), Split("c", "i", (3,), 2), Split("c", "j", (8,), 2),
        Reorder("c", ("i_0", "j_0", "i_1", "j_1")), ComputeAt("c_local", "c", "j_0"), Vectorize("c_local", "j_1"), Vectorize("c", "j_1"),
    )  # fmt: skip


def test_the_last_tile_gets_code_of_its_own_and_packed_operands_make_it_whole() -> None:
    text = generate(uneven().lower_row((), "mm"), Machine(32, 1)).text
    tile = text[text.index("c_local[24]") :]
    whole, cut = tile.split("else if (c_i_0 * 3 < 7) {")[:2]
    assert "if (c_i_0 * 3 < 5) {" in whole
    assert whole.count("f32x8 acc") == 3 and cut.split("for (long c_i_1")[0].count("f32x8 acc") == 1, "three rows, and one where one is left"
    assert "f32x4" not in whole + cut.split("for (long c_i_1")[0], "columns beyond the end are zeros of the packed operand"
    assert "b_packed_" in text and "= 0.0f;" in text[: text.index("c_local[24]")]


def test_a_reduction_that_does_not_divide_ends_its_loop_early() -> None:
    sketch = Sketch(Dag(dense())).then(Split("y", "r", (4,), 2), Reorder("y", ("r_0", "r_1", "i", "j")), Vectorize("y", "j"))
    text = generate(sketch.lower_row((), "dense"), Machine(64, 1)).text
    assert "if (6 - (y_r_0 * 4) < y_r_1_end" in text and "if (y_r_0" not in text


def test_no_program_is_named_like_a_macro_of_the_mathematics_library() -> None:
    names = ("isfinite", "isinf", "isnan", "isnormal", "isgreater", "isgreaterequal", "isless", "islessequal", "islessgreater", "isunordered", "signbit",
             "fpclassify", "issignaling", "iszero", "iseqsig")
    sketch = Sketch(Dag([te.compute((2,), lambda i: te.const(1.0), name="y")]))
    for name in names:
        assert f"void {name}_kernel(" in generate(sketch.lower_row((), name), Machine()).text
    assert "void islands(" in generate(sketch.lower_row((), "islands"), Machine()).text


def test_every_pass_has_something_to_show() -> None:
    shown = {one.name: one.shown(draft) for one, draft in traced(PASSES, draft_of(tiled().lower_row((), "dense"), Machine(32, 2)))}
    assert list(shown) == ["simplify", "cases", "sums", "places", "patterns", "tree", "text"]
    assert "y[" in shown["simplify"] and shown["sums"] == "none" and shown["places"] == "0 bytes of workspace"
    assert shown["patterns"].endswith("register tile  y: a register tile of 2 x 8, over y_r")
    assert TILE in shown["tree"] and shown["text"] == generate(tiled().lower_row((), "dense"), Machine(32, 1)).text


def test_the_dialect_says_how_indices_are_counted_and_whether_there_is_a_pool() -> None:
    dialect = Dialect(index="int", alignment=16, pool=False)
    sketch = tiled().then(Parallel("y", 1))
    source = generate(sketch.lower_row((), "dense"), Machine(16, 4, dialect))
    assert "long" not in source.text and "parallel_for" not in source.text and source.threads == 1
    assert "void dense(void *const *args, unsigned char *workspace) {" in source.text and "aligned to 16 bytes" in source.text


def test_a_loop_that_is_written_out_keeps_its_name() -> None:
    """No other loop and no tensor of a program has it."""
    x = te.placeholder((8, 8), name="x")
    y = te.compute((8, 8), lambda e_by_2, e: te.if_then_else(e % 2 == 0, x[e_by_2, e] * 2.0, x[e_by_2, e] * 3.0), name="y")
    text = generate(Sketch(Dag([x, y])).then(Unroll("y", "e")).lower_row((), "f"), Machine()).text
    assert "for (long y_e_by_2 = 0; y_e_by_2 < 8; ++y_e_by_2)" in text and "for (long y_e = 0; y_e < 4; ++y_e)" in text
    assert "y[y_e_by_2 * 8 + y_e * 2] = (x[y_e_by_2 * 8 + y_e * 2] * 2.0f);" in text
