"""However a declaration is written, its normal form is one, and computes the same."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

import ansor
from ansor import te
from ansor.ir.dag import Dag
from ansor.ir.evaluate import Array, evaluate
from ansor.ir.normal.form import normal_form
from ansor.te import workloads
from ansor.te.expr import Axis, Expr
from ansor.te.tensor import Tensor
from ansor.zoo import operators
from tests.disguises import DISGUISES, disguised

DECLARATIONS: dict[str, Callable[[], list[Tensor]]] = {
    "product": lambda: operators.matmul(12, 16, 8),
    "products": lambda: operators.batch_matmul(2, 4, 8, 4),
    "dense": lambda: operators.dense(4, 8, 12),
    "convolution": lambda: workloads.conv2d_nchw_bn_relu(1, 7, 7, 4, 8, 3, 1, 1),
    "strided": lambda: workloads.conv2d_nchw_bn_relu(2, 8, 8, 4, 4, 3, 2, 1),
    "pointwise": lambda: workloads.conv2d(1, 5, 5, 8, 4, 1),
    "depthwise": lambda: workloads.depthwise_conv2d(1, 6, 6, 8, 3, 1, 1),
    "grouped": lambda: operators.group_conv2d(1, 6, 6, 8, 8, 3, 1, 1, 2),
    "transposed": lambda: workloads.conv2d_transpose(1, 4, 4, 4, 4, 4, 2, 1),
    "dilated": lambda: workloads.conv2d(1, 8, 8, 4, 4, 3, 1, 2, 2),
    "softmax": lambda: operators.softmax(6, 8),
    "norm": lambda: operators.layer_norm(4, 8),
}


def _normal(tensors: list[Tensor]) -> Dag:
    return Dag(normal_form(Dag(tensors).tensors))


def _values(dag: Dag, given: list[Array]) -> list[Array]:
    return evaluate(dag.outputs, dict(zip([one.name for one in dag.inputs], given, strict=True)), "float64")


@pytest.mark.parametrize("name", DECLARATIONS)
def test_every_disguise_falls(name: str) -> None:
    tensors = DECLARATIONS[name]()
    key = _normal(tensors).key
    for disguise in DISGUISES:
        hidden = disguised(tensors, [disguise], seed=1)
        assert _normal(hidden).key == key, f"{disguise}\n{_normal(hidden)}\n{_normal(tensors)}"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", DECLARATIONS)
def test_disguises_over_each_other_fall_and_nothing_else_is_computed(name: str, seed: int) -> None:
    generator = random.Random(f"{name} {seed}")
    tensors, worn = DECLARATIONS[name](), [generator.choice(list(DISGUISES)) for _ in range(1 + seed)]
    plain, hidden = Dag(tensors), Dag(disguised(tensors, worn, seed))
    found = Dag(normal_form(hidden.tensors))
    given = [np.random.default_rng(seed).integers(-8, 8, one.shape).astype(one.dtype) for one in plain.inputs]
    wanted = _values(plain, given)
    for dag in (hidden, found):
        for got, want in zip(_values(dag, given), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
    assert found.key == _normal(tensors).key, f"{worn}\n{found}\n{_normal(tensors)}"
    assert normal_form(found.tensors) == found.tensors, "the normal form is in its normal form"


def test_disguises_hide_something() -> None:
    """Each of them changes the key of some declaration as it is written, but other names, which no key holds."""
    for disguise in DISGUISES:
        changed = [name for name, declare in DECLARATIONS.items() if Dag(disguised(declare(), [disguise], 1)).key != Dag(declare()).key]
        needless = ("other names", "other comparisons", "choices turned")  # seen by declarations with a border only
        assert changed or disguise in needless, disguise


Body = Callable[[Tensor, Axis, Axis], Expr]


def _one(body: Body) -> str:
    x = te.placeholder((64, 64), name="x")
    return str(_normal([x, te.compute((8, 6), lambda i, j: body(x, i, j), name="y")])).splitlines()[-1].split(" = ")[1].split("    ")[0]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (lambda x, i, j: x[(i * 6 + j) // 6, (i * 6 + j) % 6], "x[i, j]"),
        (lambda x, i, j: x[(i // 8) * 8 + i, j // 4 * 4 + j % 4], "x[i, j]"),
        (lambda x, i, j: x[(i * 12 + j) // 4, j], "x[((i * 3) + (j // 4)), j]"),
        (lambda x, i, j: x[(i // 2) // 2, (j % 4) // 2], "x[(i // 4), ((j // 2) % 2)]"),
        (lambda x, i, j: x[(i + 7) % 8 % 4, j], "x[((i + 3) % 4), j]"),
        (lambda x, i, j: x[10 - i, 5 - j], "x[(10 - i), (5 - j)]"),
        (lambda x, i, j: te.if_then_else(te.all(1 - i <= 0, j * 2 < 7), x[i, j], 0.0), "select(((i >= 1) and (j < 4)), x[i, j], 0.0)"),
        (lambda x, i, j: te.if_then_else(te.any(i < 1, j >= 4), 0.0, x[i, j]), "select(((i >= 1) and (j < 4)), x[i, j], 0.0)"),
        (lambda x, i, j: te.if_then_else(i // 4 < 1, x[i, j], x[j, i]), "select((i < 4), x[i, j], x[j, i])"),
        (lambda x, i, j: te.if_then_else(x[i, j] > 0, x[i, j], 0.0), "select((x[i, j] > 0.0), x[i, j], 0.0)"),
        (lambda x, i, j: te.if_then_else(te.logical_not(x[i, j] > 0), 0.0, x[j, i]), "select((x[i, j] > 0.0), x[j, i], 0.0)"),
        (lambda x, i, j: 2.0 * x[j, i] + x[i, j], "(x[i, j] + (x[j, i] * 2.0))"),
        (lambda x, i, j: x[i, j] - x[j, i], "(x[i, j] - x[j, i])"),
    ],
)
def test_expressions(body: Body, wanted: str) -> None:
    assert _one(body) == wanted


def test_what_is_in_the_normal_form_stays_itself() -> None:
    for name in ("product", "convolution", "softmax"):
        tensors = Dag(DECLARATIONS[name]()).tensors
        assert all(a is b for a, b in zip(normal_form(tensors), tensors, strict=True))


def test_programs_are_searched_in_the_normal_form_and_verified_as_written() -> None:
    tensors = disguised(operators.matmul(12, 16, 8), ["copies", "axes as quotient and remainder", "reductions in two loops"], 3)
    task, plain = ansor.SearchTask(tensors=tensors), ansor.SearchTask(tensors=operators.matmul(12, 16, 8))
    assert task.workload_key == plain.workload_key and task.workload_keys[1] == task.declared.key != task.workload_key
    assert [one.name for one in task.dag.tensors] == [one.name for one in task.declared.tensors]
    assert len(task.declared.stages) > len(task.dag.stages) == len(plain.dag.stages)
    assert ansor.SearchTask(tensors=tensors, as_written=True).dag is not task.dag


def test_attributes_keep_axes_and_copies() -> None:
    """They may name them."""
    x, k = te.placeholder((8, 16), name="x"), te.reduce_axis((2, 18), name="k")
    y = te.compute((8,), lambda i: te.sum(x[i, k - 2], axis=k), name="y", attrs={"layout_free_placeholders": ["k"]})
    (_, found) = normal_form([x, y])
    assert found.compute is not None and [(one.name, one.start) for one in found.compute.reduce_axes] == [("k", 2)]


def test_large_expressions_stay_as_they_are() -> None:
    x = te.placeholder((8,), name="x")

    def body(i: Axis) -> Expr:
        found = x[i]
        for _ in range(3000):
            found = 1.0 * found + x[i]
        return found

    y = te.compute((8,), body, name="y")
    assert normal_form([x, y])[1] is y
