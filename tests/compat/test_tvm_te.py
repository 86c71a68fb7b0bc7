"""`tvm.te` and `tvm.tir` as TVM's scripts use them, for names that differ from ours or do not exist in ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ansor.te
from ansor.compat import tvm
from ansor.compat.auto_scheduler.tir_text import expression_text
from ansor.compat.tvm import te
from ansor.errors import DeclarationError
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.te.tensor import Tensor
from ansor.templates.task import compute_flop

HALVES = np.array([0.5, 1.5, 2.5, -2.5], np.float32)


def of_halves(function: Any) -> list[float]:
    x = te.placeholder((4,), name="x")
    (found,) = evaluate([te.compute((4,), lambda i: function(x[i]), name="y")], {"x": HALVES})
    return [float(value) for value in found]


def test_halves_are_rounded_as_in_tvm() -> None:
    assert of_halves(te.round) == of_halves(tvm.tir.round) == [1, 2, 3, -3]
    assert of_halves(te.nearbyint) == of_halves(ansor.te.round) == [0, 2, 2, -2]


def test_text_names_functions_as_in_tvm() -> None:
    x = te.placeholder((4,), "int32", name="x")
    value = x[0].astype("float32")
    for found, text in (
        (te.round(value), "tir.round(float32(x[0]))"), (te.nearbyint(value), "tir.nearbyint(float32(x[0]))"),
        (te.atan2(value, 1.0), "tir.atan2(float32(x[0]), 1f)"),
        (x[0] << 2, "tir.shift_left(x[0], 2)"), (x[0] & 3, "tir.bitwise_and(x[0], 3)"),
    ):  # fmt: skip
        assert expression_text(found) == text
        assert not isinstance(found, tvm.tir.Call) or f"{found.op.name}(" == text[: text.index("(") + 1]  # type: ignore[attr-defined]


def test_not_of_an_integer_is_bitwise() -> None:
    x = te.placeholder((3,), "int32", name="x")
    (found,) = evaluate([te.compute((3,), lambda i: ~x[i] + 1, name="y")], {"x": np.array([0, 5, -7], np.int32)})
    assert found.tolist() == [0, -5, 7]


def test_float_extremes_are_finite_as_in_tvm() -> None:
    assert te.min_value("float32").value == np.finfo("float32").min and tvm.tir.max_value("float64").value == np.finfo("float64").max
    assert (te.min_value("int8").value, te.max_value("uint8").value) == (-128, 255)


def test_sizes_are_given_at_the_call() -> None:
    n, x = te.var("n"), te.var("x", "float32")
    a = te.placeholder((n,), name="A")
    c = te.compute(a.shape, lambda i: a[i] * x, name="C")
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[0], factor=64)
    assert "for C_i_1 in 64" in str(tvm.lower(s, [a, x, c]))
    f = tvm.build(s, [a, x, c])
    with pytest.raises(DeclarationError, match="asked for the source of default_function, whose sizes n are open; call it first"):
        f.get_source()
    with pytest.raises(DeclarationError, match="asked to save default_function, whose sizes n are open; declare it with numbers instead"):
        f.export_library("f.so")
    for size in (1, 100, 1024):
        given, found = tvm.nd.array(np.arange(size, dtype=np.float32)), tvm.nd.array(np.zeros(size, np.float32))
        f(given, 2.5, found)
        assert found.numpy().tolist() == (np.arange(size) * 2.5).tolist()
    assert f.time_evaluator(f.entry_name, tvm.cpu(), number=1)(given, 2.5, found).mean > 0 and "1024" in f.get_source()
    with pytest.raises(DeclarationError, match="asked to run default_function with n = 1024 and n = 3; give arrays with matching shapes"):
        f(given, 2.5, tvm.nd.array(np.zeros(3, np.float32)))


def test_declarations_that_depend_on_sizes() -> None:
    n, m = te.size_var("n"), te.size_var("m")
    a = te.placeholder((8,), name="A")
    found = tvm.nd.array(np.zeros(8, np.float32))
    b = te.placeholder((n,), name="B")
    d = te.compute((n,), lambda i: b[i] + len(range(n)), name="D")
    with pytest.raises(DeclarationError, match=r"asked to run with n = 8; it was declared as if eq\(n, \d+\) is True for all sizes"):
        tvm.build(te.create_schedule(d.op), [b, d])(tvm.nd.array(np.zeros(8, np.float32)), found)
    e = te.compute((8,), lambda i: a[i] + te.cast("float32", i + m), name="E")
    with pytest.raises(DeclarationError, match="no argument has the extent m"):
        tvm.build(te.create_schedule(e.op), [a, e])(tvm.nd.array(np.zeros(8, np.float32)), found)
    tvm.build(te.create_schedule(e.op), [m, a, e])(100, tvm.nd.array(np.zeros(8, np.float32)), found)
    assert found.numpy().tolist() == list(range(100, 108))


def test_names_of_expressions() -> None:
    i, x = te.placeholder((4,), "int32", name="a")[te.reduce_axis(4, "i")], te.placeholder((4,), name="x")
    assert isinstance(x.op, te.PlaceholderOp) and not isinstance(x.op, te.ComputeOp) and isinstance((x + 1).op, te.ComputeOp)
    assert isinstance(x, te.tensor.Tensor) and isinstance(te.placeholder((2, 3))[0], te.TensorSlice) and isinstance(i + 1, tvm.tir.PrimExpr)
    assert (x + 1).op.num_outputs == 1 and str((x + 1).op.body[0]) == "(x[i0] + 1.0)" and x.op.body == ()
    for found, text in (
        (tvm.tir.IntImm("int32", 3), "3"), (tvm.tir.FloatImm("float32", 3), "3.0"), (tvm.tir.const(1, dtype="int8"), "1"), (tvm.runtime.const(2.0), "2.0"),
        (tvm.tir.FloorDiv(i, 2), "(a[i] // 2)"), (tvm.tir.indexmod(i, 2), "(a[i] % 2)"), (tvm.tir.Mod(i, 2), "truncmod(a[i], 2)"),
        (tvm.tir.Cast("float32", i), "float32(a[i])"), (tvm.tir.Not(i > 0), "(not (a[i] > 0))"), (tvm.tir.all(i > 0, i < 3), "((a[i] > 0) and (a[i] < 3))"),
        (tvm.tir.Select(i > 0, i, 0), "select((a[i] > 0), a[i], 0)"), (tvm.tir.Max(i, 3), "max(a[i], 3)"), (te.div(i, 2), "truncdiv(a[i], 2)"),
    ):  # fmt: skip
        assert str(found) == text
    with pytest.raises(AttributeError, match="asked for tvm.tir.PrimFunc"):
        getattr(tvm.tir, "PrimFunc")  # noqa: B009  # what is not here, by name


def test_keywords() -> None:
    x: Any = te.placeholder(shape=(4, 8 / 2), dtype="float32", name="x")
    k = te.reduce_axis(dom=(0, 4), name="k")
    y: Tensor = te.compute(shape=(4,), fcompute=lambda i: te.sum(expr=x[i][k], axis=k, where=k > 0), name="y", tag="t", attrs={"a": 1})
    assert y.shape == (4,) and y.op.tag == "t"


@pytest.mark.compiler
def test_numbers_among_arguments() -> None:
    n = 6
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="b")
    s = te.create_schedule(b.op)
    assert "for b_i in 6" in str(tvm.lower(s, [n, a, b]))
    func = tvm.build(s, [n, a, b], "llvm")
    given, out = tvm.nd.array(np.arange(6, dtype="float32")), tvm.nd.empty((6,))
    func(n, given, out)
    assert (out.numpy() == 2 * given.numpy()).all()
    assert func.time_evaluator("main", number=1)(n, given, out).mean > 0
    with pytest.raises(ValueError, match="was built for 6 as argument 0, but found 7; build it for that size"):
        func(7, given, out)
    func(given, out)


def test_the_tensors_of_a_tuple_are_scheduled_together() -> None:
    """Naming one of them is enough; a tuple with a single tensor has no others."""
    a = te.placeholder((3, 4), name="A")
    both: Any = te.compute((3, 4), lambda i, j: (a[i, j] + 2, a[i, j] * 3), name="B")
    more, less = both
    found = [tvm.nd.array(np.zeros((3, 4), np.float32)) for _ in range(2)]
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    tvm.build(te.create_schedule(less.op), [a, more, less])(tvm.nd.array(values), *found)
    assert (found[0].numpy() == values + 2).all() and (found[1].numpy() == values * 3).all()
    assert [op.name for op in te.create_schedule([less.op, more.op]).outputs] == ["B_v0", "B_v1"]
    c = te.compute((3, 4), lambda i, j: more[i, j] + 1, name="C")
    assert [stage.name for stage in te.create_schedule(c.op).stages] == ["B_v0", "C"]


def test_reads_are_checked_when_a_program_is_made() -> None:
    """Not earlier: code that only declares may count operations, and a scan's state is read one step earlier."""
    a = te.placeholder((4,), name="A")
    with pytest.raises(DeclarationError, match="takes values -1..2 while the extent is 4"):
        ansor.te.compute((4,), lambda i: a[i - 1], name="B")
    b = te.compute((4,), lambda i: a[i - 1] * 2, name="B")
    s = te.create_schedule(b.op)
    assert compute_flop(s) == 4
    for use in (
        lambda: tvm.lower(s, [a, b]), lambda: tvm.build(s, [a, b]), lambda: tvm.auto_scheduler.ComputeDAG([a, b]),
        lambda: Dag([a, ansor.te.compute((4,), lambda i: b[i], name="C")]),
    ):  # fmt: skip
        with pytest.raises(DeclarationError, match="takes values -1..2 while the extent is 4"):
            use()
    with pytest.raises(AttributeError, match="te.scan, which is not available; a stage cannot read itself: .*topi.cumsum"):
        te.scan(b, b, a)
