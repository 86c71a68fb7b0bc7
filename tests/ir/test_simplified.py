"""Simplified programs mean the same; what vanished is gone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ansor.ir.interpreter import index_value
from ansor.ir.linear import Atom, Linear, Quotient, Remainder, Var, bounds, of
from ansor.ir.loops import Access, Buffer, For, Guard, Loops, Store
from ansor.ir.simplify import chain, simplified, simplified_index
from ansor.te.expr import Const

VARIABLES = (Var("a", 1), Var("b", 2), Var("c", 3), Var("d", 7))


@st.composite
def indices(draw: st.DrawFn, depth: int = 2) -> Linear:
    result = Linear((), draw(st.integers(-9, 9)))
    for _ in range(draw(st.integers(0, 3))):
        atom: Atom = draw(st.sampled_from(VARIABLES))
        if depth and draw(st.booleans()):
            inner, divisor = draw(indices(depth - 1)), draw(st.sampled_from((1, 2, 3, 4, 5, 6, 8, 12, 32)))
            atom = Quotient(inner, divisor) if draw(st.booleans()) else Remainder(inner, divisor)
        result = result + of(atom) * draw(st.sampled_from((-4, -2, -1, 0, 1, 2, 3, 4, 6, 8)))
    return result


@settings(max_examples=400, deadline=None, derandomize=True)
@given(indices(), st.tuples(*(st.integers(0, int(var.extent) - 1) for var in VARIABLES)))
def test_indices_keep_their_value(index: Linear, place: tuple[int, ...]) -> None:
    values = dict(zip(VARIABLES, place, strict=True))
    simple = simplified_index(index)
    value = index_value(index, {}, values)
    assert index_value(simple, {}, values) == value
    for linear in (index, simple):
        found = bounds(linear)
        assert found is not None and found[0] <= value <= found[1]


def test_divisions_fold_where_the_range_allows() -> None:
    b, c = VARIABLES[1], VARIABLES[2]
    inner = of(b) * 3 + of(c)
    assert simplified_index(of(Quotient(inner, 3))).terms == of(b).terms
    assert simplified_index(of(Remainder(inner, 3))).terms == of(c).terms
    assert simplified_index(of(Quotient(inner, 6))).terms == ()
    assert simplified_index(of(Remainder(inner - 9, 3))).terms == of(c).terms


def test_the_fine_part_leaves_a_quotient() -> None:
    c, d = VARIABLES[2], VARIABLES[3]
    inner = of(d) * 8 + of(c) + 3  # 8 d + a number below 8
    quotient, remainder = simplified_index(of(Quotient(inner, 32))), simplified_index(of(Remainder(inner, 32)))
    (atom, coefficient), = quotient.terms
    assert isinstance(atom, Quotient) and coefficient == 1 and atom.divisor == 4 and atom.value.terms == of(d).terms
    assert {type(atom) for atom, _ in remainder.terms} == {Remainder, Var} and remainder.const == 3


def program(outer: int, middle: int) -> Loops:
    """A local tile in a loop of `outer`, filled and read in a loop of `middle`."""
    x, y = Buffer("x", (4,), "float32", "input"), Buffer("y", (4,), "float32", "output")
    tile = Buffer("tile", (4,), "float32", "local")
    i, j, k, m = Var("i", outer), Var("j", middle), Var("k", 4), Var("m", 4)
    fill = For(k, "spatial", "tile", (Store("tile", tile, (of(k),), Access(x, (of(k),), "float32")),))
    copy = Store("y", y, (of(m),), Access(tile, (of(m),), "float32"), guards=(Guard(of(m), None, 4, False), Guard(of(j) + of(m), None, 4, True)))
    inner = For(j, "spatial", "y", (fill, For(m, "spatial", "y", (copy,))), locals=(tile,))
    return Loops("program", (x, y), (), (For(i, "spatial", "y", (inner,)),))


def test_loops_of_one_iteration_vanish_and_their_tiles_move_out() -> None:
    kept = simplified(program(2, 1))
    (outer,) = kept.body
    assert isinstance(outer, For) and [buffer.name for buffer in outer.locals] == ["tile"]
    assert kept.intermediates == ()
    loose = simplified(program(1, 1))
    assert len(loose.body) == 2
    assert [(buffer.name, buffer.scope) for buffer in loose.intermediates] == [("tile", "workspace")]
    stored = [chain(node)[1] for node in loose.body]
    assert stored[0] is not None and stored[0].buffer is loose.intermediates[0]
    assert stored[1] is not None and isinstance(stored[1].value, Access) and stored[1].value.buffer is loose.intermediates[0]


def test_guards_that_always_hold_are_gone() -> None:
    (outer,) = simplified(program(2, 2)).body
    assert isinstance(outer, For)
    (inner,) = outer.body
    assert isinstance(inner, For)
    store = chain(inner.body[1])[1]
    assert store is not None and len(store.guards) == 1


def test_a_reduction_over_one_element_starts_from_its_identity() -> None:
    y = Buffer("y", (), "float32", "output")
    r, s = Var("r", 1), Var("s", 3)
    reduced = Store("y", y, (), Const(1.0, "float32"), "sum", 0.0, (r, s))
    (loop,) = simplified(Loops("program", (y,), (), (For(r, "reduce", "y", (For(s, "reduce", "y", (reduced,)),)),))).body
    store = chain(loop)[1]
    assert store is not None and store.reduce_vars == (s,)


def test_a_chain_ends_at_a_tile_and_at_a_second_statement() -> None:
    (outer,) = program(2, 2).body
    loops, store = chain(outer)
    assert [loop.var.name for loop in loops] == ["i", "j"] and store is None
