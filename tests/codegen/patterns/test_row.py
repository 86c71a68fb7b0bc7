"""The innermost loop of a plain store as vectors."""

import pytest

from ansor import te
from ansor.codegen.generate import Machine
from ansor.schedule.steps import PragmaUnroll, Split, Vectorize
from ansor.te.tensor import Tensor
from tests.codegen.patterns.forms import body, forms


def plus_one(extent: int) -> list[Tensor]:
    x = te.placeholder((extent,), name="x")
    return [x, te.compute((extent,), lambda i: x[i] + 1.0, name="y")]


def padded(extent: int) -> list[Tensor]:
    x = te.placeholder((extent,), name="x")
    return [x, te.compute((extent + 2,), lambda i: te.if_then_else(te.all(i >= 1, i < extent + 1), x[i - 1], 0.0), name="y")]


def test_whole_vectors_then_halves() -> None:
    text = body(plus_one(23), Vectorize("y", "i"))
    assert [text.count(f"(f32x{lanes} *)&y") for lanes in (8, 4, 2)] == [2, 1, 1] and "y[22] = " in text
    assert forms(plus_one(23), Vectorize("y", "i")) == "f_nest0(x, y)\n  row  y: a row along y_i"


def test_many_vectors_are_looped_over() -> None:
    assert "for (long y_i = 0; y_i < 800; y_i += 8)" in body(plus_one(801), Vectorize("y", "i"))


def test_a_padding_has_single_elements_around_vectors() -> None:
    text = body(padded(16), Vectorize("y", "i"))
    assert "if" not in text and text.count("(f32x8 *)&y") == 2 and "y[0] = 0.0f;" in text.replace("(0.0f)", "0.0f")


@pytest.mark.parametrize(("length", "way"), [(8, "else if ("), (7, "else if (")])
def test_a_shorter_row_has_code_of_its_own(length: int, way: str) -> None:
    steps = (Split("y", "i", (length,), 2), Vectorize("y", "i_1"))
    assert way in body(plus_one(20), *steps) and "cut" in forms(plus_one(20), *steps)


def test_the_widest_vector_is_the_machine_s() -> None:
    assert "f32x16" in body(plus_one(16), Vectorize("y", "i"), machine=Machine(64, 1))
    assert "f32x" not in body(plus_one(16), Vectorize("y", "i"), machine=Machine(4, 1))


def test_many_elements_without_vectors_are_a_loop() -> None:
    assert "for (long y_i = 0; y_i < 16; y_i += 1)" in body(plus_one(16), Vectorize("y", "i"), machine=Machine(4, 1)).replace("++y_i", "y_i += 1")
    assert "for (" not in body(plus_one(8), Vectorize("y", "i"), machine=Machine(4, 1))


def test_a_loop_without_vectors_is_unrolled_as_far_as_its_stage_says() -> None:
    steps, machine = (Vectorize("y", "i"), PragmaUnroll("y", 4)), Machine(4, 1)
    assert "ANSOR_UNROLL(4)\n" in body(plus_one(16), *steps, machine=machine)
    assert "ANSOR_UNROLL" not in body(plus_one(16), *steps) + body(plus_one(8), *steps, machine=machine)
