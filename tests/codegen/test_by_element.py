"""Elements of a register tile that are read together, where instructions multiply by one element of a vector."""

from __future__ import annotations

import re

from ansor import te
from ansor.codegen.dialect import Dialect
from ansor.codegen.generate import Machine, generate
from ansor.ir.dag import Dag
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Pack, Reorder, Split, Step, Vectorize
from ansor.te.tensor import Tensor

NEON = Machine(16, 1, Dialect(by_element=True))


def product(dtype: str = "float32", *, padded: bool = False) -> list[Tensor]:
    a, b, k = te.placeholder((16, 24), dtype, name="A", constant=True), te.placeholder((24, 32), dtype, name="B"), te.reduce_axis((0, 24), name="k")

    def left(i: te.Axis, r: te.Axis) -> te.Expr:
        return te.if_then_else(i < 15, a[i, r], 0.0) if padded else a[i, r]

    return [a, b, te.compute((16, 32), lambda i, j: te.sum(left(i, k) * b[k, j], axis=k), name="C")]


def text(tensors: list[Tensor], rows: int, machine: Machine = NEON, *, packed: bool = True) -> str:
    steps: list[Step] = [Pack("C", "A")] if packed else []
    steps += [Split("C", "i", (rows,), 2), Split("C", "j", (8,), 2), Reorder("C", ("i_0", "j_0", "k", "i_1", "j_1")), Vectorize("C", "j_1")]
    return generate(Sketch(Dag(tensors)).then(*steps).lower_row(()), machine).text


def test_neighbours_are_one_load() -> None:
    found = text(product(), 6)
    assert re.findall(r"const (\w+) (row0_\d) = \*\(const \w+ \*\)&A\[(.*)\];", found) == [
        ("f32x4", "row0_0", "C_i_0 * 144 + C_k * 6"), ("f32x2", "row0_4", "C_i_0 * 144 + C_k * 6 + 4"),
    ]  # fmt: skip
    assert "acc0_0 = acc0_0 + row0_0[0] * in0_0;" in found.replace("(", "").replace(")", "") and "row0_4[1]" in found


def test_a_single_element_is_left_alone() -> None:
    assert "row0_" not in text(product(), 1) and text(product(), 5).count("const f32x4 row0_") == 1


def test_what_lies_apart_or_is_guarded_is_read_one_by_one() -> None:
    assert "row0_" not in text(product(), 4, packed=False)
    assert "row0_" not in text(product(padded=True), 4, packed=False)


def test_other_machines_and_integers_do_not() -> None:
    assert "row0_" not in text(product(), 4, Machine(16, 1)) and "row0_" not in text(product("int32"), 4)
