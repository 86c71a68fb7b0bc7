"""Index arithmetic: the same numbers for one program and for many."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ansor.ir.linear import Linear, Quotient, Remainder, Var, bounds, of
from ansor.ir.simplify import simplified_index

EXTENTS = st.integers(1, 7)
NUMBERS = st.integers(-5, 5)


def value(linear: Linear, at: dict[Var, int]) -> int:
    """The number an index stands for."""
    total = int(linear.const)
    for atom, coefficient in linear.terms:
        if isinstance(atom, Var):
            part = at[atom]
        else:
            assert isinstance(atom, Quotient | Remainder)
            inner = value(atom.value, at)
            part = inner // int(atom.divisor) if isinstance(atom, Quotient) else inner % int(atom.divisor)
        total += int(coefficient) * part
    return total


def points(*variables: Var) -> list[dict[Var, int]]:
    """Every combination of the variables' values."""
    found: list[dict[Var, int]] = [{}]
    for var in variables:
        found = [{**at, var: k} for at in found for k in range(int(var.extent))]
    return found


@given(EXTENTS, EXTENTS, NUMBERS, NUMBERS, NUMBERS, st.integers(1, 6))
def test_bounds_hold_and_simplifying_changes_no_value(n: int, m: int, a: int, b: int, c: int, divisor: int) -> None:
    i, j = Var("i", n), Var("j", m)
    inner = of(i) * a + of(j) * b + c
    for linear in (inner, of(Quotient(inner, divisor)) * 3 - of(i), of(Remainder(inner, divisor)) + of(Quotient(of(j) * divisor + of(i), divisor))):
        found = bounds(linear)
        assert found is not None
        for at in points(i, j):
            assert found[0] <= value(linear, at) <= found[1]
            assert value(simplified_index(linear), at) == value(linear, at)


@given(st.lists(st.tuples(EXTENTS, NUMBERS, NUMBERS), min_size=1, max_size=5), st.integers(1, 6))
def test_a_population_has_the_bounds_of_its_members(rows: list[tuple[int, int, int]], divisor: int) -> None:
    extents, factors, consts = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    whole = Var("i", extents)
    many = bounds(of(Remainder(of(whole) * factors + consts, divisor)) * 2)
    assert many is not None
    for k, (extent, factor, const) in enumerate(rows):
        one = bounds(of(Remainder(of(Var("i", extent)) * factor + const, divisor)) * 2)
        assert one is not None
        assert (np.broadcast_to(many[0], len(rows))[k], np.broadcast_to(many[1], len(rows))[k]) == one
