"""From calls to text and to kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ansor
from ansor import te
from ansor.errors import MeasureError, ScheduleError
from ansor.ir.dag import Dag
from ansor.manual.schedule import Schedule
from ansor.measure.reference import measure_task
from ansor.te.tensor import Tensor

TARGET = "cpu -mcpu=native -threads=2"

LOWERED = """
A: float32[70, 33] input
B: float32[33, 64] input
C: float32[70, 64] output
parallel for C_y_0 in 3
  for C_x_0 in 2
    C_local: float32[30, 32] local
    for C_local_k_0 in 9
      for C_local_y in 30
        unrolled for C_local_k_1 in 4
          vectorized for C_local_x in 32
            if C_y_0 * 30 + C_local_y < 70 and C_local_k_0 * 4 + C_local_k_1 < 33: \
C_local[C_local_y, C_local_x] += A[C_y_0 * 30 + C_local_y, C_local_k_0 * 4 + C_local_k_1] * B[C_local_k_0 * 4 + C_local_k_1, C_x_0 * 32 + C_local_x]
    for C_y_1 in 30
      for C_x_1 in 32
        if C_y_0 * 30 + C_y_1 < 70: C[C_y_0 * 30 + C_y_1, C_x_0 * 32 + C_x_1] = C_local[C_y_1, C_x_1]
"""


def scheduled_matmul(tile: int = 30) -> tuple[Schedule, list[Tensor]]:
    """A product of 70 x 33 and 33 x 64 in tiles that do not divide, as TVM's tutorial schedules it."""
    a, b, k = te.placeholder((70, 33), name="A"), te.placeholder((33, 64), name="B"), te.reduce_axis((0, 33), name="k")
    c = te.compute((70, 64), lambda y, x: te.sum(a[y, k] * b[k, x], axis=k), name="C")
    s = ansor.create_schedule(c.op)
    local = s.cache_write(c, "global")
    yo, xo, _, _ = s[c].tile(s[c].op.axis[0], s[c].op.axis[1], tile, 32)
    s[local].compute_at(s[c], xo)
    (y, x), (whole,) = s[local].op.axis, s[local].op.reduce_axis
    outer, inner = s[local].split(whole, factor=4)
    s[local].reorder(outer, y, inner, x)
    s[local].unroll(inner)
    s[local].vectorize(x)
    s[c].parallel(yo)
    return s, [a, b, c]


def test_lowered_text() -> None:
    s, args = scheduled_matmul()
    assert str(ansor.lower(s, args, simple_mode=True)) == LOWERED.strip()


def test_simple_mode_leaves_out_what_one_iteration_runs() -> None:
    x = te.placeholder((8,), name="x")
    s = ansor.create_schedule(y := te.compute((8,), lambda i: x[i] + 1.0, name="y"))
    s[y].split(y.op.axis[0], factor=8)
    assert "for y_i_0 in 1" in str(ansor.lower(s, simple_mode=False)) and "y_i_0" not in str(ansor.lower(s, [x, y]))
    assert ansor.lower(s, name="scale").name == "scale"


@pytest.mark.compiler
def test_built_and_verified() -> None:
    s, args = scheduled_matmul()
    kernel = ansor.build(s, args, TARGET, name="product", verify=True)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((70, 33), np.float32), rng.standard_normal((33, 64), np.float32)
    assert np.allclose(kernel(a, b), a @ b, atol=1e-4)
    assert "void product(" in kernel.source and "parallel for C_y_0 in 3" in kernel.schedule


@pytest.mark.compiler
def test_arguments_may_come_in_another_order() -> None:
    s, (a, b, c) = scheduled_matmul()
    kernel = ansor.build(s, [b, a, c], TARGET)
    assert [argument.name for argument in kernel.arguments] == ["B", "A", "C"]
    left, right = np.ones((70, 33), np.float32), np.full((33, 64), 2.0, np.float32)
    assert np.array_equal(kernel(right, left), left @ right)


@pytest.mark.compiler
def test_an_exported_kernel_knows_its_processor_and_which_indices_it_takes(tmp_path: Path) -> None:
    table, rows = te.placeholder((5, 8), name="table"), te.placeholder((64,), "int64", name="rows")
    found = te.compute((64, 8), lambda i, j: table[rows[i], j], name="found")
    folder = ansor.build(ansor.create_schedule(found.op), [rows, table, found], "cpu -mcpu=x86-64").export(tmp_path / "out")
    assert np.isin(np.fromfile(folder / "selftest.bin", np.int64, 64), range(5)).all()
    assert "-march=x86-64 " in (folder / "README.md").read_text()


@pytest.mark.compiler
def test_verifying_says_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    x = te.placeholder((8,), name="x")
    promised, kept = (te.compute((8,), lambda i, factor=factor: x[i] * factor, name="y") for factor in (3.0, 2.0))
    monkeypatch.setattr("ansor.manual.program.measure_task", lambda _, target: measure_task(Dag([x, promised]), target))
    with pytest.raises(MeasureError, match="kernel 'kernel' does not match its declaration: wrong_answer"):
        ansor.build(ansor.create_schedule(kept.op), [x, kept], TARGET, verify=True)


def test_more_stack_than_there_is_is_refused() -> None:
    a = te.placeholder((1024, 1024), name="a")
    p = te.compute((1024, 1024), lambda i, j: a[i, j] + 1.0, name="p")
    o = te.compute((1024, 1024), lambda i, j: p[i, j] * p[j, i], name="o")
    s = ansor.create_schedule(o.op)
    s[p].compute_at(s[o], o.op.axis[0])
    with pytest.raises(ScheduleError, match=r"needs 4194304 bytes for stages computed at loops; .* compute them at inner loops, or at root"):
        ansor.build(s, [a, o], TARGET)


def test_a_step_that_does_not_fit_is_told_when_lowering() -> None:
    s, args = scheduled_matmul()
    s["C"].parallel(s["C"].leaf_iter_vars[3])
    with pytest.raises(ScheduleError, match="only outermost loops can run in parallel"):
        ansor.lower(s, args)
