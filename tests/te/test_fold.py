"""Expressions that are deep, or share parts: each part is visited once."""

from __future__ import annotations

import numpy as np
import pytest

from ansor import te
from ansor.errors import DeclarationError
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.te.expr import Axis, Const, Expr, to_text
from ansor.te.fold import LARGE, fold, postorder, transform, walk
from ansor.te.interval import interval
from ansor.te.tensor import Read


def doubled(times: int) -> Expr:
    """e * e + 1, of itself."""
    value: Expr = te.placeholder((4,), name="a")[Axis("i", 4)]
    for _ in range(times):
        value = value * value + 1.0
    return value


def nested(times: int) -> Expr:
    value: Expr = te.placeholder((4,), name="a")[Axis("i", 4)]
    for k in range(times):
        value = value + float(k)
    return value


def test_operands_come_first_and_once() -> None:
    i = Axis("i", 4)
    half = i // 2
    order = list(postorder(half + half * 3))
    assert [node for node in order if node is half] == [half] and order[0] is i
    assert len(order) == 6  # i, 2, i // 2, 3, i // 2 * 3, the sum


def test_only_some_operands_are_visited() -> None:
    read = te.placeholder((4,), name="a")[Axis("i", 4) + 1]
    assert list(postorder(read, lambda node: () if isinstance(node, Read) else node.children)) == [read]


@pytest.mark.parametrize("value", [doubled(200), nested(20_000)], ids=["doubled", "nested"])
def test_what_goes_through_expressions_ends(value: Expr) -> None:
    parts = len(list(postorder(value)))
    assert len(list(walk(value))) <= parts + LARGE
    assert len(to_text(value)) < 5000 and "..." in to_text(value)
    assert interval(value) is None
    assert fold(value, lambda node, depths: 1 + max(depths, default=0)) > 200
    copied = transform(value, lambda node: Const(2.0, "float32") if isinstance(node, Const) else None)
    assert len(list(postorder(copied))) >= parts  # a constant for each use of one


def test_an_expression_is_walked_as_it_is_written() -> None:
    value = doubled(3)
    assert sum(isinstance(node, Read) for node in walk(value)) == 8
    assert sum(isinstance(node, Read) for node in walk(doubled(30))) < LARGE


def test_deep_indices_are_checked() -> None:
    a = te.placeholder((4000,), name="a")

    def shifted(i: Expr) -> Expr:
        index: Expr = i
        for _ in range(3000):
            index = te.max(index + 1, 0)
        return a[index]

    te.compute((1000,), shifted, name="inside")
    with pytest.raises(DeclarationError, match=r"\.\.\."):
        te.compute((10,), lambda i: a[shifted(i).indices[0] + 4000], name="outside")  # type: ignore[attr-defined]


def test_keys_do_not_depend_on_what_is_shared() -> None:
    def chain(share: bool, times: int) -> str:
        a = te.placeholder((4,), name="a")

        def value(i: Expr) -> Expr:
            e = a[i]
            for _ in range(times):
                e = e * e + 1.0 if share else transform(e, lambda _: None) * transform(e, lambda n: a[i] if isinstance(n, Read) else None) + 1.0
            return e

        return Dag([a, te.compute((4,), value, name="b")]).key

    assert chain(True, 4) == chain(False, 4)
    assert chain(True, 13) == chain(False, 13)  # 40,000 nodes, written out
    assert chain(True, 200) == chain(True, 200) != chain(True, 201)


@pytest.mark.parametrize("times", [30, 200])
def test_doubled_declarations_have_keys_costs_and_values(times: int) -> None:
    a = te.placeholder((4,), name="a")

    def value(i: Expr) -> Expr:
        e = a[i]
        for _ in range(times):
            e = e * e * 0.5 + 0.25
        return e

    b = te.compute((4,), value, name="b")
    dag = Dag([a, b])
    assert 4 * 3 * times <= dag.flop <= 4 * 3 * times + 4 * LARGE and len(dag.key) == 32
    data = np.asarray([0.1, -0.2, 0.3, 0.0], np.float32)
    want = data
    for _ in range(times):
        want = want * want * np.float32(0.5) + np.float32(0.25)
    np.testing.assert_allclose(evaluate([b], {"a": data})[0], want, rtol=1e-6)
