"""Products of bytes tuned on boards: no tensor is sent, and what is counted does not depend on values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansor import te
from ansor.api import tune_tasks
from ansor.measure.measurer import Candidate, Measurement, Measurer
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from tests.measure.boards.simulated import qemu_gdb
from tests.spikes import need_spike, running_spike

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]
N, K, M = 8, 32, 16


def dense() -> list[Tensor]:
    a, b = te.placeholder((N, K), "int8", name="A"), te.placeholder((M, K), "int8", name="B")
    k = te.reduce_axis((0, K), name="k")
    return [a, b, te.compute((N, M), lambda i, j: te.sum(a[i, k].astype("int32") * b[j, k].astype("int32"), axis=k), name="C")]


def convolution() -> list[Tensor]:
    x, w = te.placeholder((6, 6, 8), "int8", name="A"), te.placeholder((4, 3, 3, 8), "int8", name="B")
    y, z, c = (te.reduce_axis((0, extent), name=name) for name, extent in (("y", 3), ("z", 3), ("c", 8)))
    made = te.compute((4, 4, 4), lambda i, j, f: te.sum(x[i + y, j + z, c].astype("int32") * w[f, y, z, c].astype("int32"), axis=[y, z, c]), name="C")
    return [x, w, made]


@contextmanager
def wire_to(board: str) -> Iterator[str]:
    if not board.startswith("spike"):
        with qemu_gdb(board) as (text, _):
            yield text
        return
    need_spike()
    with running_spike(64, ("--isa=rv64gc",)) as text:
        yield text


@pytest.mark.parametrize("declared", [dense, convolution])
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "qemu-riscv32", "spike-rv64"])
def test_counts_are_the_same_with_given_values(board: str, declared: Callable[[], list[Tensor]], tmp_path: Path) -> None:
    task = SearchTask(declared, (), f"micro -board={board}")
    shape = task.dag.inputs[0].shape
    values = np.random.default_rng(1).integers(-128, 128, shape).astype(np.int8)
    np.save(tmp_path / "A.npy", values)
    with wire_to(board) as wire:
        (state,) = tune_tasks([task], trials=3, devices=[wire], progress=False)
        assert state.best is not None
        source = task.source(state.best.sketch, state.best.row)
        given = replace(task.measure_task, files=((task.dag.inputs[0].name, str(tmp_path / "A.npy")),))
        seeded, real = (measured(task, Candidate(one, source), wire) for one in (task.measure_task, given))
    assert seeded.failure is None and real.failure is None, (seeded, real)
    assert seeded.cost == real.cost == state.best.cost
    assert dict(seeded.counters)["tensor_bytes_sent"] == 0 and dict(real.counters)["tensor_bytes_sent"] == values.nbytes


def measured(task: SearchTask, one: Candidate, wire: str) -> Measurement:
    with Measurer(task.target, [wire]) as measurer, closing(measurer.measure([one])) as results:
        (found,) = results
    return found
