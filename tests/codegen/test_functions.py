"""Nests as functions: what their tasks are, which buffers they take, and how they are called."""

from ansor import te
from ansor.codegen.dialect import Dialect
from ansor.codegen.functions import calls
from ansor.codegen.generate import PASSES, Machine, draft_of
from ansor.ir.dag import Dag
from ansor.ir.passes import run
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeAt, Parallel, Reorder, Step, Vectorize
from ansor.te.tensor import Tensor
from tests.codegen.patterns.forms import body, forms

TWO = Machine(32, 2)


def shifted() -> list[Tensor]:
    x = te.placeholder((4, 6), name="x")
    y = te.compute((4, 6), lambda i, j: te.exp(x[i, j]), name="y")
    return [x, te.compute((4, 6), lambda i, j: y[i, j] + y[i, 5 - j], name="z")]


def turned() -> list[Tensor]:
    x = te.placeholder((32, 32), name="x")
    return [x, te.compute((32, 32), lambda i, j: x[j, i], name="y")]


def test_parallel_loops_become_tasks() -> None:
    assert forms(shifted(), Parallel("z", 2), machine=TWO).splitlines()[-2:] == [
        "f_nest1(z, y), 24 tasks of z_i, z_j", "  plain loops  z: element by element",
    ]  # fmt: skip
    text = body(shifted(), Parallel("z", 2), machine=TWO)
    assert "const long z_i = task / 6;" in text and "const long z_j = (task) % 6;" in text
    assert "tasks" not in forms(shifted(), Parallel("z", 2), machine=Machine(32, 1))
    assert "tasks" not in forms(shifted(), Parallel("z", 2), machine=Machine(32, 2, Dialect(pool=False)))


def test_local_arrays_are_declared_in_the_loop_they_live_in() -> None:
    steps: tuple[Step, ...] = (ComputeAt("y", "z", "i"), Parallel("z", 1))
    assert forms(shifted(), *steps, machine=TWO).startswith("f_nest0(x, z), 4 tasks of z_i\n  for y_j in 6\n    plain loops  y")
    assert "float y[6] __attribute__((aligned(64)));" in body(shifted(), *steps, machine=TWO)


def test_transposed_copies_are_shared_out_in_strips() -> None:
    steps: tuple[Step, ...] = (Reorder("y", ("j", "i")), Reorder("y", ("i", "j")), Vectorize("y", "j"), Parallel("y", 1))
    assert "a strip of " in forms(turned(), *steps, machine=TWO) and "y_i_first = task * 8;" in body(turned(), *steps, machine=TWO)


def test_functions_are_called_with_the_buffers_they_use() -> None:
    draft = run(PASSES[:5], draft_of(Sketch(Dag(shifted())).then(Parallel("z", 1)).lower_row((), "f"), TWO))
    first, second = draft.functions
    assert calls(first) == ["f_nest0(x, y);"]
    assert calls(second) == ["struct f_nest1_task f_nest1_task = {z, y};", "parallel_for(pool, f_nest1_body, &f_nest1_task, 4);"]
