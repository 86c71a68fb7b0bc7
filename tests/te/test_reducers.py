"""Reductions of some places only, from a start of one's own, and by functions of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ansor
from ansor import te
from ansor.errors import DeclarationError
from ansor.ir.evaluate import evaluate
from ansor.te.expr import Expr
from ansor.te.tensor import Tensor

A, PLACE_OF = te.placeholder((5, 7), name="A"), te.placeholder((5, 7), "int32", name="I")
B = te.placeholder((5,), name="B")
VALUES = np.random.default_rng(0).integers(-3, 4, (5, 7)).astype("float32")
PLACES = np.arange(35, dtype=np.int32).reshape(5, 7)[:, ::-1].copy()
START = np.arange(5, dtype=np.float32)
INPUTS = {"A": VALUES, "I": PLACES, "B": START}


def body(tensor: Tensor) -> str:
    assert tensor.compute is not None
    return str(tensor.compute.body)


def value(tensor: Tensor) -> np.ndarray[Any, Any]:
    return evaluate([tensor], INPUTS)[0]


def axis(name: str = "k") -> te.Axis:
    return te.reduce_axis((0, 7), name)


def own(combine: Any, identity: Any, name: str = "own") -> Any:
    return te.comm_reducer(combine, identity, name)


@pytest.mark.parametrize(("name", "of"), [("sum", np.sum), ("prod", np.prod), ("max", np.max), ("min", np.min)])
def test_only_where_a_condition_holds_and_from_a_start(name: str, of: Any) -> None:
    k, reduce = axis(), getattr(te, name)
    kept = VALUES[:, 2:]
    np.testing.assert_array_equal(value(te.compute((5,), lambda i: reduce(A[i, k], axis=k, where=k > 1))), of(kept, 1))
    both = np.concatenate([START[:, None], kept], 1)
    np.testing.assert_array_equal(value(te.compute((5,), lambda i: reduce(A[i, k], axis=k, where=k > 1, init=B[i]))), of(both, 1))
    np.testing.assert_array_equal(value(te.compute((5,), lambda i: reduce(A[i, k], k, None, 2.0))), of(np.insert(VALUES, 0, 2, 1), 1))
    np.testing.assert_array_equal(value(te.compute((5,), lambda i: reduce(A[i, k], axis=[k], where=te.const(False)))), of(np.zeros((5, 0)), 1,
                                  **({"initial": -np.inf if name == "max" else np.inf} if name in ("max", "min") else {})))  # fmt: skip


def test_two_values_are_combined_as_they_are() -> None:
    i, k = te.Axis("i", 5), axis()
    assert str(te.sum(B[i], 1.0)) == "(B[i] + 1.0)" and str(te.prod(B[i], B[i])) == "(B[i] * B[i])" and str(te.max(i, 3)) == "max(i, 3)"
    assert str(te.max(A[i, k], k)) == str(te.max(A[i, k], axis=k)) == "max(A[i, k], axis=[k])" and str(te.min(B[i], B[i], 2.0)) == "min(min(B[i], B[i]), 2.0)"


def test_axes_with_one_name_are_told_apart() -> None:
    first, second = te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 7), "k")
    assert body(te.compute((1,), lambda _: te.sum(A[first, second], axis=[first, second]))) == "sum(A[k, k1], axis=[k, k1])"
    three = [te.reduce_axis((0, 5), "k"), te.reduce_axis((0, 7), "k1"), te.reduce_axis((0, 2), "k")]
    assert body(te.compute((1,), lambda _: te.sum(A[three[0], three[1]], axis=three))) == "sum(A[k, k1], axis=[k, k1, k2])"
    with pytest.raises(DeclarationError, match="one of them twice; make a te.reduce_axis for each"):
        te.sum(A[0, second], axis=[second, second])


@pytest.mark.parametrize(("combine", "identity", "name"), [
    (lambda x, y: x + y, lambda t: te.const(0, t), "sum"), (lambda x, y: y * x, lambda t: te.const(1, t), "prod"),
    (lambda x, y: te.max(x, y), lambda t: te.min_value(t), "max"), (lambda x, y: te.if_then_else(x > y, x, y), lambda t: te.const(-3.4028235e38, t), "max"),
    (lambda x, y: te.if_then_else(y >= x, x, y), te.max_value, "min"),
])  # fmt: skip
def test_functions_of_ones_own_are_recognised(combine: Any, identity: Any, name: str) -> None:
    k = axis()
    assert str(own(combine, identity)(A[0, k], axis=k)) == f"{name}(A[0, k], axis=[k])"


def test_a_start_that_is_not_neutral_counts() -> None:
    k = axis()
    found = te.compute((5,), lambda i: own(lambda x, y: te.max(x, y), lambda t: te.const(2.5, t))(A[i, k], axis=k))
    np.testing.assert_array_equal(value(found), np.maximum(VALUES.max(1), 2.5))
    assert str(own(lambda x, y: x + y, lambda t: te.const(0, t))(A[0, 0], A[0, 1])) == "(A[0, 0] + A[0, 1])"


@pytest.mark.compiler
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("least", [False, True])
@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("lowest", [False, True])
def test_pairs_chosen_by_one_member(at: int, least: bool, last: bool, lowest: bool) -> None:
    """The place of an extreme, with ties broken by order or by the other member; places that count, NaN, and nothing that counts."""
    k, other = axis(), 1 - at

    def combine(x: tuple[Expr, Expr], y: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
        better = x[at] < y[at] if least else x[at] > y[at]
        first = (x[other] > y[other] if last else x[other] < y[other]) if lowest else te.const(not last)
        choice = te.any(better, te.all(x[at] == y[at], first))
        return te.if_then_else(choice, x[0], y[0]), te.if_then_else(choice, x[1], y[1])

    extreme = own(combine, lambda *types: tuple(te.const(-1, t) if q == other else (te.max_value if least else te.min_value)(t) for q, t in enumerate(types)))
    pair: Any = te.compute((5,), lambda i: extreme((A[i, k], k) if at == 0 else (k, A[i, k]), axis=k, where=te.all(k > 0, i < 4)), name="T")
    values = VALUES.copy()
    values[2, 3] = np.nan
    where = (values[:, :0:-1] if last else values[:, 1:])
    picked = (where.argmin(1) if least else where.argmax(1))
    wanted = np.where(np.arange(5) < 4, 6 - picked if last else picked + 1, -1)
    for found in (evaluate(pair, {"A": values}), ansor.auto_schedule([A, *pair], trials=0, target="cpu -threads=1")(values)):
        assert np.asarray(found[other]).tolist() == wanted.tolist()
        np.testing.assert_array_equal(np.asarray(found[at])[:4], values[range(4), wanted[:4]])
    assert [one.name for one in pair] == ["T_v0", "T_v1"]


@pytest.mark.parametrize(("place", "right"), [
    (lambda r, k: 5 * r + k, True), (lambda r, k: 9 * r + 2 * k - 3, True), (lambda r, k: r * 4 + k, False), (lambda r, k: k * 4 + r, False),
    (lambda r, k: -r * 5 - k, False), (lambda r, k: r * k, False), (lambda r, k: PLACE_OF[r, k], False), (lambda r, k: k, False),
    (lambda r, k: (10 * r + 2 * k).astype("int64"), True), (lambda r, k: te.max(5 * r + k, 3), False),
    (lambda r, k: (10 * r + 2 * k).astype("int8"), True), (lambda r, k: (40 * r + 8 * k).astype("int8"), False),
    (lambda r, k: r.astype("int8") * 50 + k, False), (lambda r, k: (1024 * r + 2 * k).astype("float16"), False),
])  # fmt: skip
def test_ties_are_broken_by_places_that_grow(place: Any, right: bool) -> None:
    r, k = te.reduce_axis((0, 4), "r"), te.reduce_axis((2, 7), "k")

    def lower(x: tuple[Expr, Expr], y: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
        choice = te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0]))
        return te.if_then_else(choice, x[0], y[0]), te.if_then_else(choice, x[1], y[1])

    def made() -> Any:
        return te.compute((), lambda: own(lower, lambda s, t: (te.const(-1, s), te.min_value(t)))((place(r, k), A[r, k]), axis=[r, k]), name="T")

    if not right:
        with pytest.raises(DeclarationError, match="asked for own, which keeps of equal values that with the smaller `.*`; this is supported for sums of axes"):
            made()
        return
    places = evaluate([te.compute((4, 7), lambda i, j: place(i, j).astype("int32"), name="P")], {})[0]
    values = VALUES[:4, 2:]
    assert evaluate(made(), INPUTS)[0] == places[:, 2:][values == values.max()].min()


def test_places_over_several_axes_and_from_a_tensor() -> None:
    r, k = te.reduce_axis((1, 5), "r"), te.reduce_axis((2, 7), "k")
    extreme = own(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.if_then_else(x[1] >= y[1], x[1], y[1])), lambda s, t: (te.const(-1, s), te.min_value(t))
    )
    pair: Any = te.compute((), lambda: extreme((PLACE_OF[r, k], A[r, k]), axis=[r, k]), name="T")
    inside = VALUES[1:, 2:]
    place, best = evaluate(pair, INPUTS)
    assert best == inside.max() and place == PLACES[1:, 2:].ravel()[inside.argmax()]


def test_members_that_do_not_meet_are_reductions_of_their_own() -> None:
    k = axis()
    both = own(lambda x, y: (x[0] + y[0], te.max(x[1], y[1])), lambda s, t: (te.const(0, s), te.min_value(t)))
    pair: Any = te.compute((5,), lambda i: both((PLACE_OF[i, k], A[i, k]), axis=k, where=k % 2 == 0), name="T")
    total, most = pair
    np.testing.assert_array_equal(value(total), PLACES[:, ::2].sum(1))
    np.testing.assert_array_equal(value(most), VALUES[:, ::2].max(1))


def test_a_tuple_is_a_tensor_for_each_member() -> None:
    pair: Any = te.compute((5, 7), lambda i, j: (A[i, j] + 1, A[i, j] * 2), name="D", tag="pair")
    more, twice = pair
    np.testing.assert_array_equal(value(more), VALUES + 1)
    np.testing.assert_array_equal(value(twice), VALUES * 2)
    assert (more.name, twice.name, more.tag) == ("D_v0", "D_v1", "pair") and not {*more.op.axis} & {*twice.op.axis}


@pytest.mark.parametrize("make", [
    lambda k: own(lambda x, y: x * 2 + y, lambda t: te.const(0, t))(A[0, k], axis=k),
    lambda k: own(lambda x, y: x - y, lambda t: te.const(0, t))(A[0, k], axis=k),
    lambda k: own(lambda x, y: te.if_then_else(x > 0.0, x, y), lambda t: te.const(0, t))(A[0, k], axis=k),
    lambda k: own(lambda x, y: (x[0] + y[1], x[1]), lambda s, t: (te.const(0, s), te.const(0, t)))((PLACE_OF[0, k], A[0, k]), axis=k),
])  # fmt: skip
def test_other_functions_are_refused(make: Any) -> None:
    with pytest.raises(DeclarationError, match="asked for the reduction own by .* there are sums, products, maxima and minima"):
        make(axis())


def test_functions_of_tuples_give_as_many() -> None:
    k = axis()
    with pytest.raises(DeclarationError, match="its functions have to give as many, in a tuple"):
        own(lambda x, y: x[0], lambda s, t: te.const(0, s))((PLACE_OF[0, k], A[0, k]), axis=k)
