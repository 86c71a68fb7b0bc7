"""Reductions in vectors of partial results."""

from ansor import te
from ansor.schedule.steps import Split, Unroll, Vectorize
from ansor.te.tensor import Tensor
from tests.codegen.patterns.forms import body, forms


def sums(rows: int, length: int) -> list[Tensor]:
    x, r = te.placeholder((rows, length), name="x"), te.reduce_axis((0, length), name="k")
    return [x, te.compute((rows,), lambda i: te.sum(x[i, r], axis=r), name="y")]


def test_partial_results_are_combined_at_the_end() -> None:
    assert forms(sums(3, 40), Vectorize("y", "k")).endswith("y: a vectorised reduction of one element, over y_k, 8 lanes")
    text = body(sums(3, 40), Vectorize("y", "k"))
    assert text.count("f32x8 acc0_") == 4 and "fold0_4" in text and "fold0_1" in text


def test_elements_that_are_written_out_are_reduced_together() -> None:
    steps = (Split("y", "i", (2,), 2), Unroll("y", "i_1"), Vectorize("y", "k"))
    assert forms(sums(4, 64), *steps).endswith("of 2, over y_k, 8 lanes")
    assert "acc0_0_0" in body(sums(4, 64), *steps) and "acc0_1_0" in body(sums(4, 64), *steps)


def test_a_reduction_that_is_cut_runs_as_a_loop() -> None:
    text = forms(sums(3, 41), Split("y", "k", (8,), 2), Vectorize("y", "k_1"))
    assert "reduction in vectors" not in text and "register tile" in text


def test_choices_beside_a_remainder_are_made_in_vectors() -> None:
    x, least, k = te.placeholder((7, 64), name="x"), te.placeholder((7,), name="least"), te.reduce_axis((0, 64), name="k")
    above = te.compute((7,), lambda i: te.sum(te.select(x[i, k] > least[i], x[i, k], 0.0), axis=k), name="y")
    text = forms([x, least, above], Split("y", "i", (2,), 2), Unroll("y", "i_1"), Vectorize("y", "k"))
    assert text.endswith("y: a vectorised reduction of 2, over y_k, cut, 8 lanes")
