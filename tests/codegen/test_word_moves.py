"""Four bytes that a condition chooses are moved as one number where there is no operating system."""

from __future__ import annotations

import numpy as np
import pytest

from ansor import te
from ansor.codegen.dialect import Dialect
from ansor.codegen.generate import Machine, generate
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Split, Vectorize
from ansor.te.tensor import Tensor

BARE = Machine(4, 1, Dialect(hosted=False))


def padded(dtype: str = "int8", value: int = -128, added: int = 0, row: int = 8) -> list[Tensor]:
    data = te.placeholder((6, row), dtype, name="data")

    def element(y: te.Axis, c: te.Axis) -> te.Expr:
        return te.if_then_else((y >= 1) & (y < 7), data[y - 1, c] + added if added else data[y - 1, c], te.const(value, dtype))

    return [data, te.compute((8, 8), element, name="padded")]


def sketch(tensors: list[Tensor], lanes: int = 4) -> Sketch:
    return Sketch(Dag(tensors)).then(Split("padded", "c", (lanes,), 2), Vectorize("padded", "c_1"))


def text(tensors: list[Tensor], machine: Machine = BARE, lanes: int = 4) -> str:
    return generate(sketch(tensors, lanes).lower_row(()), machine).text


@pytest.mark.parametrize(("dtype", "value", "word"), [("int8", -128, "(-2139062144)"), ("int8", -2, "(-16843010)"), ("uint8", 3, "50529027"), ("int8", 0, "0")])
def test_one_number(dtype: str, value: int, word: str) -> None:
    found = text(padded(dtype, value))
    assert "*(i8x4_word *)&padded[" in found and "? *(const i8x4_word *)&data[" in found and f" : {word});" in found
    assert int(word.strip("()")) == int(np.full(4, value, dtype).view(np.int32)[0])


def test_not_where_more_is_done_or_there_are_vectors() -> None:
    assert "i8x4_word *)" not in text(padded(added=1))
    assert "i8x4_word *)" not in text(padded("int16"))
    assert "i8x4_word *)" not in text(padded(row=9)), "rows that begin anywhere"
    assert "i8x4_word *)" not in text(padded(), Machine(4, 1, Dialect()))
    assert "i8x4_word *)" not in text(padded(), Machine(16, 1, Dialect(hosted=False)), lanes=8)
