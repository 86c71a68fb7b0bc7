"""Tensors: how axes are named, what is checked, and every mistake's sentence."""

from typing import Any

import numpy as np
import pytest

from ansor import te
from ansor.errors import DeclarationError
from ansor.ir.evaluate import evaluate
from ansor.te.interval import interval
from ansor.te.tensor import Tensor

A: Any = te.placeholder((4, 6), name="A")
WRONG: Any = (2.5,)


def test_a_compute_keeps_axes_reduce_axes_and_body() -> None:
    r = te.reduce_axis((0, 6), name="r")
    c = te.compute((4, 3), lambda i, j: te.sum(A[i, r] * A[i, j], axis=r), name="C", attrs={"note": 1})
    assert c.compute is not None
    assert [(axis.name, axis.extent, axis.kind) for axis in c.compute.axes] == [("i", 4, "spatial"), ("j", 3, "spatial")]
    assert c.compute.reduce_axes == (r,)
    assert str(c.compute.body) == "sum((A[i, r] * A[i, j]), axis=[r])"
    assert (c.shape, c.dtype, c.ndim, c.size, c.is_placeholder, dict(c.attrs)) == ((4, 3), "float32", 2, 12, False, {"note": 1})
    assert repr(c) == "Tensor(C, (4, 3), float32)"


def test_axes_are_named_after_parameters() -> None:
    def named(tensor: Tensor) -> list[str]:
        assert tensor.compute is not None
        return [axis.name for axis in tensor.compute.axes]

    assert named(te.compute((4, 6), lambda *places: A[places] + 1)) == ["i0", "i1"]
    assert named(te.compute((4, 6), lambda row, *rest: A[(row, *rest)] + 1)) == ["row", "i1"]
    assert named(te.compute((4, 6), lambda row, column, scale=2: A[row, column] * scale)) == ["row", "column"]


def test_rank_zero_and_numbers_as_bodies() -> None:
    r = te.reduce_axis(4, "r")
    total = te.compute((), lambda: te.sum(A[r, 0], axis=r), name="total")
    assert (total.shape, total.size) == ((), 1)
    assert str(te.compute((2,), lambda i: total[()] + 1).compute.body) == "(total[] + 1.0)"  # type: ignore[union-attr]
    assert te.compute((3,), lambda i: 1).dtype == "float32"


def test_extents_may_be_numpy_integers() -> None:
    assert te.placeholder((np.int64(3), 2)).shape == (3, 2)  # type: ignore[arg-type]
    assert te.placeholder(np.int64(3)).shape == (3,)  # type: ignore[arg-type]
    assert te.reduce_axis((np.int64(1), np.int64(3)), "r").extent == 2  # type: ignore[arg-type]


def test_extents_may_be_floats_without_a_fraction() -> None:
    assert te.placeholder((32.0, 64 / 4)).shape == (32, 16) and te.placeholder(np.float32(3)).shape == (3,)  # type: ignore[arg-type]
    assert te.compute((6 / 2,), lambda i: A[i, 0]).shape == (3,) and te.reduce_axis((0, 6 / 2)).extent == te.reduce_axis(3.0).extent == 3
    assert {type(extent) for extent in te.placeholder((32.0, te.const(4))).shape} == {int}  # type: ignore[arg-type]


def test_indices_may_be_given_one_at_a_time() -> None:
    i, j = te.Axis("i", 4), te.Axis("j", 6)
    cube: Any = te.placeholder((4, 6, 2), "int8", name="T")
    assert str(cube[i][j][1]) == str(cube[i, j][1]) == str(cube[i][j, 1]) == "T[i, j, 1]"
    assert (cube[i].shape, cube[i].ndim, cube[i].dtype, cube[i, j].shape, str(cube[i])) == ((6, 2), 2, "int8", (2,), "T[i]")


def test_arithmetic_of_tensors_is_elementwise_and_broadcasts() -> None:
    b: Any = te.placeholder((6,), "int32", name="B")
    c, s = te.placeholder((4, 1), name="C"), te.placeholder((), name="s")
    for found, text in (
        (A + 1.0, "(A[i0, i1] + 1.0)"), (1 - A, "(1.0 - A[i0, i1])"), (A * b, "(A[i0, i1] * float32(B[i1]))"), (A / c, "(A[i0, i1] / C[i0, 0])"),
        (A + s, "(A[i0, i1] + s[])"), (s + 2, "(s[] + 2.0)"), (-A, "(0.0 - A[i0, i1])"), (A + b[0], "(A[i0, i1] + float32(B[0]))"),
        (b[0] + c, "(float32(B[0]) + C[i0, i1])"), (A // 2, "floor((A[i0, i1] / 2.0))"), (b % 3, "(B[i0] % 3)"), (b << 1, "(B[i0] << 1)"),
        (1 << b, "(1 << B[i0])"), (b & 3, "(B[i0] & 3)"), (3 | b, "(3 | B[i0])"), (b ^ b, "(B[i0] ^ B[i0])"), (~b, "(B[i0] ^ -1)"),
        (A**2, "pow(A[i0, i1], 2.0)"),
        (np.float32(2) * A, "(2.0 * A[i0, i1])"),
    ):  # fmt: skip
        assert found.compute is not None and str(found.compute.body) == text
    assert (A + c).shape == (A * A).shape == (4, 6) and (c > A).dtype == "bool" and (~(c > A)).dtype == "bool"
    assert ((A + 1).op.tag, (A + A).op.tag, (A + b[0]).op.tag, (A + A).name) == ("elemwise", "broadcast", "elemwise", "T_add")
    assert (A == A) is True and (c == A) is False


def test_calling_reads_too() -> None:
    i = te.Axis("i", 4)
    assert str(A(i, 0)) == "A[i, 0]"


def test_unnamed_reduce_axes_differ() -> None:
    assert te.reduce_axis(3).name != te.reduce_axis(3).name


@pytest.mark.parametrize(("declare", "sentence"), [
    (lambda: A(0), "asked for the value of A[0], which has 1 index; tensor A of shape (4, 6) has 2 dimensions: give one index for each"),
    (lambda: te.compute((4,), lambda i: A[i], name="C"), "asked for the value of A[i], which has 1 index; tensor A"),
    (lambda: iter(A[0]), "A[0] cannot be iterated over while declaring; index it: A[0][i]"),
    (lambda: A[0, 0, 0], "asked to read tensor A of shape (4, 6) with 3 indices"),
    (lambda: A[0, te.const(1.0)], "asked to read tensor A at `1.0` in dimension 1, which has dtype float32; indices are integers"),
    (lambda: iter(A), "tensor A cannot be iterated over while declaring; index it: A[i]"),
    (lambda: te.placeholder((4, 0), name="Z"), "asked for placeholder Z with extent 0 in dimension 1; extents have to be at least 1"),
    (lambda: te.placeholder(WRONG, name="Z"), "asked for placeholder Z with extent 2.5 in dimension 0; extents are whole numbers: divide with //"),
    (lambda: te.placeholder((te.Axis("n", 4),), name="Z"), "make one declaration for each size, with a function of the sizes"),  # type: ignore[arg-type]
    (lambda: te.placeholder(("4",), name="Z"), "extents are whole numbers: give a Python integer"),  # type: ignore[arg-type]
    (lambda: te.placeholder((2,), "float8"), "asked for dtype 'float8', which is not one of"),
    (lambda: te.reduce_axis((3, 3), "r"), "asked for reduce axis r over 3..3, which is empty; it needs at least one value"),
    (lambda: te.reduce_axis(0, "r"), "asked for reduce axis r over 0..0, which is empty"),
    (lambda: te.reduce_axis((0, *WRONG), "r"), "asked for reduce axis r over (0, 2.5); give (start, end) or an extent"),
    (lambda: te.compute((4,), lambda i, j: A[i, j], name="C"), "asked for compute C of rank 1 with a function of 2 parameters"),
    (lambda: te.compute((-1,), lambda i: 1, name="C"), "asked for compute C with extent -1 in dimension 0"),
])
def test_mistakes_give_a_sentence(declare: object, sentence: str) -> None:
    assert callable(declare)
    with pytest.raises(DeclarationError) as caught:
        declare()
    assert sentence in str(caught.value)


def test_an_axis_of_the_output_and_a_reduced_one_need_two_names() -> None:
    r = te.reduce_axis((0, 6), name="i")
    with pytest.raises(DeclarationError, match=r"compute C has two axes named 'i' \(extents 4 and 6\), one output axis and one reduction axis; rename one"):
        te.compute((4,), lambda i: te.sum(A[i, r], axis=r), name="C")


def test_a_reduction_inside_an_expression_is_refused() -> None:
    r = te.reduce_axis((0, 6), name="r")
    with pytest.raises(DeclarationError, match="compute C uses te.sum.* inside another expression; declare the reduction as a separate compute"):
        te.compute((4,), lambda i: te.sum(A[i, r], axis=r) + 1, name="C")


def test_foreign_axes_are_refused() -> None:
    r, other = te.reduce_axis((0, 6), name="r"), te.Axis("k", 4)
    with pytest.raises(DeclarationError, match="compute C uses axis r, which is not one of its own; wrap the expression in te.sum"):
        te.compute((4,), lambda i: A[i, r], name="C")
    with pytest.raises(DeclarationError, match="compute C uses axis k, which is not one of its own; use the parameters"):
        te.compute((4,), lambda i: A[other, 0], name="C")


@pytest.mark.parametrize(("shape", "index", "found"), [
    ((4,), lambda i: (i + 1, 0), r"in dimension 0 at `\(i \+ 1\)`, which takes values 1..4 while the extent is 4"),
    ((4,), lambda i: (i - 1, 0), r"in dimension 0 at `\(i - 1\)`, which takes values -1..2"),
    ((4,), lambda i: (i, i * 2), r"in dimension 1 at `\(i \* 2\)`, which takes values 0..6"),
    ((4,), lambda i: (0, 6), "in dimension 1 at `6`, which takes values 6..6"),
    ((14,), lambda i: (0, i // 2), r"in dimension 1 at `\(i // 2\)`, which takes values 0..6"),
])
def test_a_read_that_provably_leaves_its_tensor_is_refused(shape: tuple[int, ...], index: object, found: str) -> None:
    assert callable(index)
    with pytest.raises(DeclarationError, match=rf"compute C reads tensor A of shape \(4, 6\) {found}.*guard the read with te.if_then_else"):
        te.compute(shape, lambda i: A[index(i)], name="C")


def test_reads_that_may_stay_inside_are_accepted() -> None:
    places = te.placeholder((9,), "int32", name="places")
    te.compute((9,), lambda i: A[i % 4, i % 6])
    te.compute((9,), lambda i: A[te.min(i, 3), 0])
    te.compute((9,), lambda i: A[places[i], 0])
    te.compute((9,), lambda i: te.if_then_else(te.all(i >= 2, i < 6), A[i - 2, 0], 0))
    te.compute((9,), lambda i: te.if_then_else(te.any(i >= 4, A[i, 0] > 0), 1.0, 0.0))


def test_a_guarded_read_that_is_always_outside_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"at `\(i \+ 4\)`, which takes values 4..12 .* its condition does not exclude that"):
        te.compute((9,), lambda i: te.if_then_else(i < 4, A[i + 4, 0], 0), name="C")


@pytest.mark.parametrize("condition", [
    lambda i: i > 100, lambda i: i >= 9, lambda i: i < 0, lambda i: i <= -1, lambda i: te.all(A[0, 0] > 0, i > 9), lambda i: ~(i < 9),
    lambda i: te.const(False), lambda i: ~te.any(i < 100, A[0, 0] > 0),
])  # fmt: skip
def test_a_read_below_a_condition_that_never_holds_may_be_anywhere(condition: Any) -> None:
    found = te.compute((9,), lambda i: te.if_then_else(condition(i), A[i + 4, i - 20], 7.0), name="C")
    assert evaluate([found], {"A": np.zeros((4, 6), np.float32)})[0].tolist() == [7.0] * 9
    te.compute((9,), lambda i: te.if_then_else(~condition(i), 7.0, A[i + 4, i - 20]), name="C")
    te.compute((9,), lambda i: te.all(condition(i), A[i + 4, 0] > 0).astype("int32"), name="C")


def test_intervals_contain_every_value() -> None:
    i, r = te.Axis("i", 5), te.Axis("r", 4, "reduce", 2)
    for expr in (i * 3 - r, te.min(r, i), te.max(r, i - 3), (i + r) // 3, (i + r) % 3, (r - 1) % 8, i * -2):
        bounds = interval(expr)
        assert bounds is not None
        values = [_value(expr, {i: x, r: y}) for x in range(5) for y in range(2, 6)]
        assert bounds[0] <= min(values) and max(values) <= bounds[1]
    assert interval(te.truncdiv(i, 2)) is None


def _value(expr: te.Expr, values: dict[te.Axis, int]) -> int:
    from ansor.te.expr import Const, substitute

    folded = substitute(expr, {axis: Const(value, "int32") for axis, value in values.items()})
    return int(eval(str(folded)))


def test_dtypes_of_numpy_are_dtypes() -> None:
    x = te.placeholder((4,), np.float32, name="x")  # type: ignore[arg-type]
    y = te.compute((4,), lambda i: x[i].astype(np.dtype("int8")), name="y")  # type: ignore[arg-type]
    assert (x.dtype, y.dtype) == ("float32", "int8")


def test_an_axis_is_no_index_of_a_list_and_a_name_is_a_text() -> None:
    numbers = [1.0, 2.0]
    with pytest.raises(DeclarationError, match="asked for the number of the expression `i`, .* make the table a te.placeholder"):
        te.compute((2,), lambda i: numbers[i], name="y")
    with pytest.raises(DeclarationError, match=r"asked for a reduce axis over 3 named 4; the name is a text"):
        te.reduce_axis(3, 4)  # type: ignore[arg-type]


def test_a_numpy_array_is_not_read_at_an_axis() -> None:
    table, a = np.ones((4, 4), "float32"), te.placeholder((4,), name="a")
    for body in (lambda i: a[i] * table[i, 0], lambda i: a[i] * table[0][i + 1]):
        with pytest.raises(DeclarationError, match=r"^asked for compute b, whose function indexes a NumPy array .*; read a te.placeholder\(.*constant=True"):
            te.compute((4,), body, "b")
    with pytest.raises(IndexError, match="list index out of range"):
        te.compute((4,), lambda i: a[i] * [1.0][2], "b")
