"""What the ALU makes of expressions: ranges, where values wrap around, and what it lacks, in a sentence."""

from __future__ import annotations

import pytest

from ansor import te
from ansor.te.expr import Expr, const
from ansor.te.tensor import Read
from ansor.vta.values import AluError, Value, either, reduced, value_on_core

X = te.placeholder((4,), "int8", name="x")
AXIS = te.compute((4,), lambda i: X[i]).compute.axes[0]  # type: ignore[union-attr]  # it is computed
READ = X[AXIS]
WIDE = READ.astype("int32")


def test_ranges_are_those_of_int32() -> None:
    assert value_on_core(READ) == Value((-128, 127))
    assert value_on_core(te.max(te.min(WIDE * 100 + 7, 50), -3)) == Value((-3, 50))
    assert value_on_core((WIDE + 72) >> 1) == value_on_core((WIDE + 72) // 2) == Value((-28, 99))


def test_int8_wraps_around_where_it_may() -> None:
    assert value_on_core(te.max(te.min(WIDE * 9, 127), -128).astype("int8")) == Value((-128, 127))
    assert value_on_core((WIDE * 9).astype("int8")) == value_on_core(READ * const(9, "int8")) == Value((-128, 127), wrapped=True)
    assert value_on_core((READ + const(1, "int8")).astype("int32") * 5).wrapped
    assert not value_on_core(te.min(READ, const(3, "int8"))).wrapped


def test_known_values_of_nodes_are_used() -> None:
    def leaf(node: Expr) -> Value | None:
        return Value((0, 1)) if isinstance(node, Read) else None

    assert value_on_core(WIDE + 3, leaf) == Value((3, 4))
    assert value_on_core(WIDE + 3, lambda node: Value((0, 1), wrapped=True) if isinstance(node, Read) else None).wrapped


def test_reductions() -> None:
    assert reduced("sum", Value((0, 1))) == Value((-(2**31), 2**31 - 1)) and reduced("max", Value((0, 1))) == Value((0, 1))
    assert either(Value((0, 1)), Value((-9, -9), wrapped=True)) == Value((-9, 1), wrapped=True)
    with pytest.raises(AluError, match="a reduction by prod; a VTA core reduces by sum, min and max: do this on the host"):
        reduced("prod", Value((0, 1)))
    with pytest.raises(AluError, match="max of int8 values that may have wrapped around"):
        reduced("max", Value((0, 1), wrapped=True))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (WIDE // 3, "// by 3; .* divide by 2 \\*\\* n"),
        (WIDE // WIDE, "// by a tensor or a result"),
        (WIDE % 5, "%; the ALU of a VTA core has"),
        (WIDE & 7, "&; the ALU"),
        (te.const(1, "int32") << WIDE, "<< by a tensor or a result"),
        (te.abs(WIDE), r"a choice between values; .*te.max\(v, 0 - v\) for te.abs"),
        (te.if_then_else(AXIS < 2, WIDE, 0), "a border, or parts .* pads only what it reduces"),
        (WIDE + AXIS, "the index i as a value; .* pass an int32 tensor with these numbers"),
        (te.exp(WIDE.astype("float32")), "values of float32; .*: scale by a product and a shift of int32"),
        (WIDE.astype("int64") * 3, "values of int64; .*: compute in int32"),
        ((WIDE > 3).astype("int32"), "a comparison as a value"),
        ((READ + const(1, "int8")) >> const(1, "int8"), ">> of int8 values that may have wrapped around; .* clip with"),
        (te.min((WIDE * 3).astype("int8").astype("int32"), 5), "min of int8 values that may have wrapped around"),
    ],
)
def test_what_the_alu_lacks_is_said(value: Expr, said: str) -> None:
    with pytest.raises(AluError, match=said):
        value_on_core(value)
