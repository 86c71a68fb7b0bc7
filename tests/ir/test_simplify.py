"""Data-dependent indices are simplified however deep they lie, and guards are one for each sum of loops."""

from __future__ import annotations

import pytest

from ansor.ir.linear import Atom, Linear, Opaque, Quotient, Remainder, Var, atom_variables, of
from ansor.ir.loops import Access, Buffer, For, Guard, Loops, Store
from ansor.ir.simplify import chain, merged, simplified


def _program(wrap: type[Quotient] | type[Remainder] | None) -> Loops:
    chosen, x = Buffer("chosen", (4,), "int32", "input"), Buffer("x", (9,), "float32", "input")
    y = Buffer("y", (4,), "float32", "output")
    gone, i = Var("gone", 1), Var("i", 4)
    atom: Atom = Opaque(Access(chosen, (of(i) + of(gone),), "int32"))
    index = of(atom) if wrap is None else of(wrap(of(atom) + of(gone), 3))
    store = Store("y", y, (of(i),), Access(x, (index,), "float32"))
    return Loops("program", (chosen, x, y), (), (For(gone, "spatial", "y", (For(i, "spatial", "y", (store,)),)),))


def _mentioned(linear: Linear) -> set[str]:
    found: set[str] = set()
    for atom, _ in linear.terms:
        found |= {var.name for var in atom_variables(atom)}
        for inner in (atom.value.terms if isinstance(atom, Quotient | Remainder) else ((atom, 1),)):
            if isinstance(inner[0], Opaque) and isinstance(inner[0].value, Access):
                found |= set().union(*(_mentioned(index) for index in inner[0].value.index))
    return found


@pytest.mark.parametrize("wrap", [None, Quotient, Remainder])
def test_a_vanished_loop_is_gone_from_what_data_choose(wrap: type[Quotient] | type[Remainder] | None) -> None:
    (loop,) = simplified(_program(wrap)).body
    store = chain(loop)[1]
    assert store is not None and isinstance(store.value, Access)
    assert _mentioned(store.value.index[0]) == {"i"}


def test_guards_of_one_sum_become_one_without_bounds_that_hold() -> None:
    i, j = Var("i", 4), Var("j", 8)
    place = of(i) * 8 + of(j)
    (guard,) = merged((Guard(place, None, 30), Guard(of(j) + of(i) * 8 + 1, 0, 27), Guard(of(j), 0, 8)))
    assert (guard.value, guard.low, guard.high) == (place, None, 26)
    kept = merged((Guard(place + -3, 0, 40), Guard(of(i), None, 3)))
    assert [(one.low, one.high) for one in kept] == [(0, None), (None, 3)]
