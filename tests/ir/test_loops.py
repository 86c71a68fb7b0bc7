"""A program as a person reads it."""

from typing import Any

import pytest

from ansor import te
from ansor.ir.dag import Dag
from ansor.ir.simplify import simplified
from ansor.schedule.choice import tile_choice
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeAt, Pack, Parallel, PragmaUnroll, Reorder, Split, Vectorize
from ansor.te.tensor import Tensor

EXPECTED = """\
x: float32[8, 6] input
w: float32[2, 6, 4] constant packed
y: float32[8, 8] output
parallel for y_i in 8
  half: float32[1, 6] local
  for half_m in 6
    half[0, half_m] = x[y_i, half_m] * 0.5
  for y_j_0 in 2
    for y_r in 6  (unroll up to 16)
      vectorized for y_j_1 in 4
        y[y_i, y_j_0 * 4 + y_j_1] += half[0, y_r] * w[y_j_0, y_r, y_j_1]"""


def declared() -> list[Tensor]:
    x, w = te.placeholder((8, 6), name="x"), te.placeholder((6, 8), name="w", constant=True)
    half = te.compute((8, 6), lambda i, m: x[i, m] * 0.5, name="half")
    r = te.reduce_axis((0, 6), name="r")
    return [x, w, te.compute((8, 8), lambda i, j: te.sum(half[i, r] * w[r, j], axis=r), name="y")]


def test_loops_buffers_and_flags_are_shown() -> None:
    sketch = Sketch(Dag(declared())).then(
        Pack("y", "w"), Split("y", "j", "j", 2), Reorder("y", ("i", "j_0", "r", "j_1")), ComputeAt("half", "y", "i"),
        Parallel("y", 1), PragmaUnroll("y", 16), Vectorize("y", "j_1"), choices=[tile_choice("j", 8, 1)],
    )  # fmt: skip
    gene = sketch.choices[0].index_of((4,))
    assert gene is not None
    assert str(simplified(sketch.lower_row((gene,)))) == EXPECTED


def test_a_population_shows_ranges() -> None:
    import numpy as np

    sketch = Sketch(Dag(declared())).then(Split("y", "j", "j", 2), choices=[tile_choice("j", 8, 1)])
    text = str(sketch.lower_rows(np.array([[0], [1]])))
    assert "for y_j_0 in 4..8" in text
    assert "for y_j_1 in 1..2" in text


@pytest.mark.parametrize(("value", "text"), [
    (lambda a, i: (a[i] - (a[7 - i] - 2.0)) * 3.0 / (a[i] * 2.0), "(a[b_i] - (a[b_i * -1 + 7] - 2.0)) * 3.0 / (a[b_i] * 2.0)"),
    (lambda a, i: te.if_then_else(te.all(a[i] > 1, te.any(a[i] < 0, i - 1 < 3)), a[(i * 3) // 4], 0.0),
     "select(a[b_i] > 1.0 and (a[b_i] < 0.0 or b_i - 1 < 3), a[(b_i * 3) // 4], 0.0)"),
    (lambda a, i: te.if_then_else(te.logical_not(te.all(a[i] > 1, a[i // 4] < 2)), 1.0, 0.0), "select(not (a[b_i] > 1.0 and a[b_i // 4] < 2.0), 1.0, 0.0)"),
    (lambda a, i: te.max(a[i] * 2 + 1, 0.0) - (a[i] + 1), "max(a[b_i] * 2.0 + 1.0, 0.0) - (a[b_i] + 1.0)"),
])  # fmt: skip
def test_values_have_parentheses_only_where_they_are_needed(value: Any, text: str) -> None:
    a = te.placeholder((8,), name="a")
    loops = Sketch(Dag([a, te.compute((8,), lambda i: value(a, i), name="b")])).lower_row(())
    assert str(loops).splitlines()[-1].partition(" = ")[2] == text
