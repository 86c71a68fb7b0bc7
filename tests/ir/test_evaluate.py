"""NumPy evaluation of declarations, against plain Python; and the same declaration in double."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansor import te
from ansor.errors import DeclarationError
from ansor.ir import evaluate as module
from ansor.ir.double import in_double
from ansor.ir.evaluate import Array, evaluate
from ansor.te.expr import Expr
from ansor.te.tensor import Tensor


def value(tensor: Tensor, **arrays: Array) -> Array:
    return evaluate([tensor], arrays)[0]


def test_axes_broadcast_over_the_grid() -> None:
    got = value(te.compute((3, 4), lambda i, j: te.cast("float32", i * 10 + j), name="C"))
    np.testing.assert_array_equal(got, np.arange(3)[:, None] * 10 + np.arange(4))
    assert got.dtype == np.float32


def test_reduce_axes_may_start_elsewhere() -> None:
    a, r = te.placeholder((10,), "int32", name="A"), te.reduce_axis((3, 7), "r")
    assert value(te.compute((), lambda: te.sum(a[r] * r, axis=r)), A=np.arange(10, dtype=np.int32)) == 9 + 16 + 25 + 36


@pytest.mark.parametrize(("combiner", "want"), [(te.sum, 10), (te.prod, 24), (te.max, 4), (te.min, 1)])
def test_combiners(combiner: Callable[..., Expr], want: int) -> None:
    a, r = te.placeholder((2, 2), "int64", name="A"), te.reduce_axis(2, "r")
    s = te.reduce_axis(2, "s")
    assert value(te.compute((), lambda: combiner(a[r, s], axis=[r, s])), A=np.array([[1, 2], [3, 4]])) == want


def test_sums_of_small_integers_wrap_in_their_dtype() -> None:
    a, r = te.placeholder((3,), "int8", name="A"), te.reduce_axis(3, "r")
    assert value(te.compute((), lambda: te.sum(a[r], axis=r)), A=np.array([100, 100, 0], np.int8)) == 200 - 256


def test_several_outputs_share_their_producers() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] * 2, name="B")
    c, d = te.compute((4,), lambda i: b[i] + 1, name="C"), te.compute((4,), lambda i: b[i] - 1, name="D")
    data = np.arange(4, dtype=np.float32)
    got = evaluate([c, d, b], {a: data})
    for one, want in zip(got, (data * 2 + 1, data * 2 - 1, data * 2), strict=True):
        np.testing.assert_array_equal(one, want)


def test_a_choice_guards_its_reads() -> None:
    a = te.placeholder((4,), name="A")
    got = value(te.compute((8,), lambda i: te.if_then_else(te.all(i >= 2, i < 6), a[i - 2], -1)), A=np.arange(4, dtype=np.float32))
    assert got.tolist() == [-1, -1, 0, 1, 2, 3, -1, -1]


def test_a_condition_guards_the_next() -> None:
    a = te.placeholder((4,), name="A")
    got = value(te.compute((6,), lambda i: te.if_then_else(te.all(i < 4, a[i] > 1), 1.0, 0.0)), A=np.arange(4, dtype=np.float32))
    assert got.tolist() == [0, 0, 1, 1, 0, 0]


def test_an_unguarded_read_out_of_bounds_is_reported() -> None:
    a, places = te.placeholder((4,), name="A"), te.placeholder((2,), "int32", name="P")
    gather = te.compute((2,), lambda i: a[places[i]], name="G")
    assert value(gather, A=np.arange(4, dtype=np.float32), P=np.array([3, 0], np.int32)).tolist() == [3, 0]
    with pytest.raises(DeclarationError, match=r"tensor A of shape \(4,\) is read at `P\[i\]` in dimension 0, which takes values 0..4"):
        value(gather, A=np.arange(4, dtype=np.float32), P=np.array([4, 0], np.int32))


@pytest.mark.parametrize(("operation", "want"), [
    (te.truncdiv, lambda a, b: int(a / b)), (te.truncmod, lambda a, b: a - int(a / b) * b),
    (te.floordiv, lambda a, b: a // b), (te.floormod, lambda a, b: a % b),
])
def test_division(operation: Callable[..., Expr], want: Callable[[int, int], int]) -> None:
    a, b = te.placeholder((4,), "int32", name="A"), te.placeholder((4,), "int32", name="B")
    left, right = [7, -7, 7, -7], [2, 2, -2, -2]
    got = value(te.compute((4,), lambda i: operation(a[i], b[i])), A=np.array(left, np.int32), B=np.array(right, np.int32))
    assert got.tolist() == [want(x, y) for x, y in zip(left, right, strict=True)]


def test_functions() -> None:
    a = te.placeholder((5,), name="A")
    data = np.array([-2.5, -0.5, 0.5, 1.5, 2.0], np.float32)
    cases: list[tuple[Callable[[Expr], Expr], Callable[[float], float]]] = [
        (te.exp, math.exp), (te.tanh, math.tanh), (te.erf, math.erf), (te.sin, math.sin), (te.cos, math.cos), (te.floor, math.floor), (te.ceil, math.ceil),
        (te.trunc, math.trunc), (te.round, round), (te.abs, abs), (te.sigmoid, lambda x: 1 / (1 + math.exp(-x))),
        (lambda x: te.rsqrt(x * x), lambda x: 1 / abs(x)),
        (lambda x: te.log(x * x), lambda x: math.log(x * x)), (lambda x: te.log2(x * x), lambda x: math.log2(x * x)), (lambda x: te.sqrt(x * x), abs),
        (lambda x: te.power(x, 3), lambda x: x**3),
    ]
    for function, plain in cases:
        got = value(te.compute((5,), lambda i, function=function: function(a[i])), A=data)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, [plain(float(x)) for x in data], rtol=1e-6, atol=1e-7)


def test_casts_follow_c() -> None:
    a = te.placeholder((4,), name="A")
    data = np.array([1.9, -1.9, 0.0, 100.0], np.float32)
    assert value(te.compute((4,), lambda i: te.cast("int32", a[i])), A=data).tolist() == [1, -1, 0, 100]
    assert value(te.compute((4,), lambda i: te.cast("bool", a[i])), A=data).tolist() == [True, True, False, True]
    assert value(te.compute((4,), lambda i: te.cast("int8", te.cast("int32", a[i]) + 100)), A=data).tolist() == [101, 99, 100, -56]


def test_float32_stays_float32_and_can_be_done_in_double() -> None:
    a = te.placeholder((1,), name="A")
    third = te.compute((1,), lambda i: a[i] / 3 + te.const(0.1), name="C")
    one = np.ones(1, np.float32)
    single, double = evaluate([third], {"A": one})[0], evaluate([third], {"A": one}, dtype="float64")[0]
    assert single.dtype == np.float32 and double.dtype == np.float64
    assert double.item() == 1 / 3 + float(np.float32(0.1))  # the constant keeps the value it has in float32
    assert single.item() != double.item()


def test_in_double_changes_float32_only() -> None:
    a, n = te.placeholder((4,), name="A", constant=True), te.placeholder((4,), "int8", name="N")
    r = te.reduce_axis(4, "r")
    b = te.compute((4,), lambda i: te.if_then_else(n[i] > 0, te.exp(a[i]), te.cast("float32", n[i])), name="B", attrs={"note": 1})
    c = te.compute((), lambda: te.sum(b[r] * te.cast("float64", n[r]).astype("float32"), axis=r), name="C")
    wide_a, wide_n, wide_b, wide_c = in_double([a, n, b, c])
    assert [t.dtype for t in (wide_a, wide_n, wide_b, wide_c)] == ["float64", "int8", "float64", "float64"]
    assert wide_a.constant and wide_b.attrs == {"note": 1} and wide_n.name == "N"
    assert wide_b.compute is not None and wide_c.compute is not None
    assert str(wide_b.compute.body) == "select((N[i] > 0), exp(A[i]), float64(N[i]))"
    assert str(wide_c.compute.body) == "sum((B[r] * float64(N[r])), axis=[r])"
    from ansor.te.fold import walk
    from ansor.te.tensor import Read

    (read,) = [node for node in walk(wide_c.compute.body) if isinstance(node, Read) and node.tensor.name == "B"]
    assert read.tensor is wide_b


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_blocks_and_views_change_nothing(data: st.DataObject) -> None:
    """Random affine reads, in blocks of a few points, against plain loops."""
    extents = data.draw(st.tuples(*[st.integers(1, 4)] * 3))
    scale = [data.draw(st.integers(-2, 2)) for _ in extents]
    shift = sum(-min(0, s) * (n - 1) for s, n in zip(scale, extents, strict=True))
    length = shift + sum(max(0, s) * (n - 1) for s, n in zip(scale, extents, strict=True)) + 1
    a, r = te.placeholder((length,), "int32", name="A"), te.reduce_axis(extents[2], "r")
    guarded = data.draw(st.booleans())

    def body(i: te.Expr, j: te.Expr) -> Expr:
        read = a[i * scale[0] + j * scale[1] + r * scale[2] + shift]
        return te.sum(te.if_then_else(i < 2, read, j) if guarded else read, axis=r)

    numbers = np.arange(length, dtype=np.int32) ** 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_POINTS", data.draw(st.sampled_from([1, 5, 1000])))
        got = value(te.compute(extents[:2], body), A=numbers)
    for i in range(extents[0]):
        for j in range(extents[1]):
            taps = [int(numbers[i * scale[0] + j * scale[1] + k * scale[2] + shift]) for k in range(extents[2])]
            assert got[i, j] == sum(tap if i < 2 or not guarded else j for tap in taps)


@pytest.mark.parametrize(("inputs", "sentence"), [
    ({}, "asked to evaluate without a value for A; values are given for nothing"),
    ({"B": np.zeros(4, np.float32)}, "without a value for A; values are given for B"),
    ({"A": np.zeros(5, np.float32)}, "with a float32 array of shape (5,) for A, which is declared float32 of shape (4,)"),
    ({"A": np.zeros(4, np.float64)}, "with a float64 array of shape (4,) for A, which is declared float32"),
    ({"A": np.zeros(4, np.float32), te.placeholder((4,), name="A"): np.zeros(4, np.float32)}, "with two values for a name"),
])
def test_mistakes_give_a_sentence(inputs: dict[str | Tensor, Array], sentence: str) -> None:
    a = te.placeholder((4,), name="A")
    with pytest.raises(DeclarationError) as caught:
        evaluate([te.compute((4,), lambda i: a[i] + 1)], inputs)
    assert sentence in str(caught.value)


def test_other_precisions_are_refused() -> None:
    with pytest.raises(DeclarationError, match="asked to evaluate in dtype 'float16'; it is None"):
        evaluate([], {}, dtype="float16")
