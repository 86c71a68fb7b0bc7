"""Unrolled loops that take another case in each iteration are written out; results stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ansor.ir import interpreter
from ansor.ir.cases import written_out
from ansor.ir.linear import Linear, Opaque, Quotient, Remainder, Var, of
from ansor.ir.loops import Access, Buffer, For, Guard, IndexValue, Loops, Node, Runs, Store, stores
from ansor.te.expr import Binary, Const, Expr, Select

UNROLLED = Runs(unrolled=True)
X, CHOSEN, Y = Buffer("x", (64,), "int32", "input"), Buffer("chosen", (64,), "int32", "input"), Buffer("y", (3, 64), "int32", "output")
ROW, J = Var("i", 3), Var("j", 2)


def chain(tested: Linear, numbers: list[int], values: list[Expr]) -> Expr:
    """values[k] where `tested` is numbers[k], else the last."""
    found = values[-1]
    for number, value in reversed(list(zip(numbers, values, strict=False))):
        found = Select(Binary("eq", IndexValue(tested), Const(number, "int32"), "bool"), value, found, "int32")
    return found


def read(index: Linear, factor: int) -> Expr:
    return Binary("mul", Access(X, (index,), "int32"), Const(factor, "int32"), "int32")


def choosing(extent: int, period: int, cases: int | None = None) -> Store:
    """y[i, e] = one of as many values, by e % period. Each reads other elements, some at places that data choose."""
    e = Var("e", extent)
    tested = of(e) if period == extent else of(Remainder(of(e), period))
    at = of(Quotient(of(e), period)) + of(ROW) * 4
    values = [read(at + of(Opaque(Access(CHOSEN, (of(e),), "int32"))) if k % 3 == 1 else at + k, k + 2) for k in range(cases or period)]
    return Store("y", Y, (of(ROW), of(e)), chain(tested, list(range(len(values) - 1)), values))


def nest(*stores: Store, runs: Runs = UNROLLED, locals: tuple[Buffer, ...] = ()) -> For:
    (e,) = {index.terms[0][0] for store in stores for index in store.index[1:]}
    assert isinstance(e, Var)
    return For(ROW, "spatial", "y", (For(e, "spatial", "y", stores, runs, locals),))


def results(node: Node) -> np.ndarray:
    rng = np.random.default_rng(0)
    inputs = {"x": rng.integers(-99, 99, 64, dtype=np.int32), "chosen": rng.integers(0, 40, 64, dtype=np.int32)}
    return interpreter.run(Loops("f", (X, CHOSEN, Y), (), (node,)), inputs)["y"]


@pytest.mark.parametrize(("extent", "period"), [(4, 4), (16, 4), (36, 6), (6, 6), (2, 2), (12, 3)])
def test_each_case_is_a_statement_of_its_own(extent: int, period: int) -> None:
    before = nest(choosing(extent, period))
    after = written_out(before)
    assert (results(before) == results(after)).all()
    found = list(stores((after,)))
    assert len(found) == period and not any(isinstance(store.value, Select) for _, store in found)
    assert {tuple((loop.var.name, loop.var.extent) for loop in path) for path, _ in found} == {
        (("i", 3),) if extent == period else (("i", 3), ("e", extent // period))
    }


def test_loops_inside_are_repeated() -> None:
    store = choosing(4, 4)
    (e,) = (atom for atom, _ in store.index[1].terms if isinstance(atom, Var))
    inner = replace(store, index=(of(ROW), of(e) * 2 + of(J)), value=Binary("add", store.value, Access(X, (of(J),), "int32"), "int32"))
    plain = For(ROW, "spatial", "y", (For(e, "spatial", "y", (For(J, "spatial", "y", (inner,)),), UNROLLED),))
    assert written_out(plain).lines() == plain.lines()  # a sum of a case and something else is no case
    chosen = replace(inner, value=store.value)
    before = For(ROW, "spatial", "y", (For(e, "spatial", "y", (For(J, "spatial", "y", (chosen,)),), UNROLLED),))
    after = written_out(before)
    assert len(list(stores((after,)))) == 4 and (results(before) == results(after)).all()


def test_cases_of_cases() -> None:
    outer, e = Var("o", 3), Var("e", 2)
    inside = [chain(of(e), [0], [read(of(outer) + k, k + 2), read(of(e) + 7, 5)]) for k in range(3)]
    store = Store("y", Y, (of(ROW), of(outer) * 2 + of(e)), chain(of(outer), [0, 1], inside))
    before = For(ROW, "spatial", "y", (For(outer, "spatial", "y", (For(e, "spatial", "y", (store,), UNROLLED),), UNROLLED),))
    after = written_out(before)
    assert len(list(stores((after,)))) == 6 and (results(before) == results(after)).all()


def test_the_first_of_several_periods_is_written_out() -> None:
    e = Var("e", 8)
    by_four = chain(of(Remainder(of(e), 4)), [0, 1, 2], [read(of(e) + k, k + 2) for k in range(4)])
    before = nest(Store("y", Y, (of(ROW), of(e)), chain(of(Remainder(of(e), 2)), [0], [read(of(e), 2), by_four])))
    after = written_out(before)
    assert len(list(stores((after,)))) == 2 and (results(before) == results(after)).all()


def left_alone() -> dict[str, For]:
    store = choosing(8, 4)
    tile = Buffer("tile", (4,), "int32", "local")
    return {
        "fewer cases than iterations": nest(choosing(8, 4, cases=3)),
        "a loop that is not unrolled": nest(store, runs=Runs()),
        "an array inside": nest(store, locals=(tile,)),
        "a guard": nest(replace(store, guards=(Guard(store.index[1], None, 7),))),
        "a guard that data decide": nest(replace(store, guards=(Guard(of(Opaque(Access(CHOSEN, (store.index[1],), "int32"))), None, 7),))),
        "a reduction": nest(replace(store, combiner="sum")),
        "a value that does not choose": nest(store, replace(store, value=read(store.index[1], 3))),
    }


@pytest.mark.parametrize("why", sorted(left_alone()))
def test_other_loops_stay(why: str) -> None:
    before = left_alone()[why]
    assert written_out(before).lines() == before.lines()


def test_a_bare_statement_stays() -> None:
    store = Store("y", Y, (Linear(), Linear()), Const(1, "int32"))
    assert written_out(store) is store
