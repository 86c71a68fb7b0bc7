"""What the copies of an unrolled body compute, against looking at each copy."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from ansor.cost_model.copies import shares, uses
from ansor.ir.interpreter import index_value
from ansor.ir.linear import Atom, Linear, Quotient, Remainder, Var, of
from ansor.ir.loops import Access, Buffer, For, IndexValue, Runs
from ansor.ir.numpy_operations import OPERATIONS
from ansor.schedule.legality import MAX_STATEMENTS
from ansor.te.expr import COMPARISONS, LOGIC, Binary, Const, Expr, Not, Select
from ansor.te.fold import postorder

X = Buffer("x", (64,), "float32", "input")
ROW, E = Var("i", 5), Var("e", 12)
COPIES = [{ROW: i, E: e} for i, e in itertools.product(range(5), range(12))]


def loop(var: Var, *, unrolled: bool = True) -> For:
    return For(var, "spatial", "y", (), Runs(unrolled=unrolled))


def read(place: int) -> Expr:
    return Access(X, (Linear((), place),), "float32")


def equals(index: Linear, number: int) -> Expr:
    return Binary("eq", IndexValue(index), Const(number, "int32"), "bool")


def select(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    return Select(condition, then, otherwise, "float32")


def computed(value: Expr, numbers: dict[Var, int]) -> set[int]:
    """The nodes that one copy computes; the choices that it does not make are left out."""
    if isinstance(value, Select):
        return computed(value.then if holds(value.condition, numbers) else value.otherwise, numbers)
    return {id(value)}.union(*(computed(child, numbers) for child in value.children))


def written(value: Expr, numbers: dict[Var, int]) -> Counter[int]:
    """How often one copy computes each node, written out."""
    if isinstance(value, Select):
        return written(value.then if holds(value.condition, numbers) else value.otherwise, numbers)
    return sum((written(child, numbers) for child in value.children), Counter({id(value): 1}))


def holds(condition: Expr, numbers: dict[Var, int]) -> int:
    if isinstance(condition, Const):
        return int(condition.value)
    if isinstance(condition, IndexValue):
        return index_value(condition.value, {}, numbers)
    if isinstance(condition, Not):
        return not holds(condition.children[0], numbers)
    assert isinstance(condition, Binary)
    return int(OPERATIONS[condition.op](*(np.asarray(holds(child, numbers)) for child in condition.children)))


def drawn_condition(rng: np.random.Generator, depth: int) -> Expr:
    kind = rng.integers(4) if depth else 0
    if kind == 1:
        return Not(drawn_condition(rng, depth - 1))
    if kind == 2:
        return Binary(str(rng.choice(LOGIC)), drawn_condition(rng, depth - 1), drawn_condition(rng, depth - 1), "bool")
    atoms: list[Atom] = [E, ROW, Remainder(of(E), 4), Quotient(of(E) + of(ROW) * 2, 3)]
    index = of(atoms[rng.integers(4)]) * int(rng.integers(1, 3)) + int(rng.integers(-2, 3))
    return Binary(str(rng.choice(COMPARISONS)), IndexValue(index), Const(int(rng.integers(8)), "int32"), "bool")


def drawn_value(rng: np.random.Generator, depth: int, made: list[Expr]) -> Expr:
    """Parts are used again, so that several cases share them."""
    kind = rng.integers(4) if depth else 0
    if made and kind == 3:
        return made[rng.integers(len(made))]
    if kind == 0:
        made.append(read(len(made)))
    elif kind == 1:
        made.append(Binary("add", drawn_value(rng, depth - 1, made), drawn_value(rng, depth - 1, made), "float32"))
    else:
        made.append(select(drawn_condition(rng, 2), drawn_value(rng, depth - 1, made), drawn_value(rng, depth - 1, made)))
    return made[-1]


def drawn(seed: int) -> Expr:
    rng = np.random.default_rng(seed)
    return select(drawn_condition(rng, 2), drawn_value(rng, 5, []), drawn_value(rng, 5, []))


@pytest.mark.parametrize("seed", range(60))
def test_a_share_is_the_copies_that_compute_a_part(seed: int) -> None:
    value = drawn(seed)
    found = shares(value, [loop(ROW), loop(E)])
    copies = [computed(value, numbers) for numbers in COPIES]
    for node in postorder(value):
        if node.dtype == "float32":
            wanted = 0.0 if isinstance(node, Select) else sum(id(node) in copy for copy in copies) / len(copies)
            assert found.get(id(node), 0.0) == pytest.approx(wanted), str(node)


@pytest.mark.parametrize("seed", range(60))
def test_a_part_is_used_as_often_as_it_is_written(seed: int) -> None:
    value = drawn(seed)
    found = uses(value, [loop(ROW), loop(E)])
    copies = [written(value, numbers) for numbers in COPIES]
    for node in postorder(value):
        if node.dtype == "float32" and not isinstance(node, Select):
            assert found.get(id(node), 0.0) == pytest.approx(sum(copy[id(node)] for copy in copies) / len(copies)), str(node)


def test_a_row_of_a_matrix_is_one_of_its_sums() -> None:
    rows = [Binary("add", read(k), read(k + 8), "float32") for k in range(3)]
    value = select(equals(of(Remainder(of(E), 3)), 0), rows[0], select(equals(of(Remainder(of(E), 3)), 1), rows[1], rows[2]))
    assert [shares(value, [loop(E)])[id(row)] for row in rows] == pytest.approx([1 / 3] * 3)


PATHS = {"no loop": [], "not unrolled": [loop(E, unrolled=False)], "too many copies": [loop(Var("long", MAX_STATEMENTS + 1)), loop(E)]}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_a_choice_at_run_time_computes_either(path: list[For]) -> None:
    assert shares(select(equals(of(E), 1), read(0), read(1)), path) == {}


def test_a_choice_by_data_is_made_at_run_time() -> None:
    """Also where an unrolled number has a part in it; the choice inside is still made when the code is compiled."""
    inner = select(equals(of(E), 1), read(0), read(1))
    data = Binary("lt", read(2), Const(1.0, "float32"), "bool")
    value = select(Binary("and", data, equals(of(E), 2), "bool"), inner, read(3))
    found = shares(value, [loop(E)])
    assert [found[id(node)] for node in (value, data, inner, inner.children[1])] == pytest.approx([1, 1, 0, 1 / 12])
    assert shares(select(data, read(0), read(1)), [loop(E)]) == {}


def test_without_a_choice_there_is_nothing_to_tell() -> None:
    assert shares(Binary("add", read(0), read(1), "float32"), [loop(E)]) == {}
