"""Convolutions and products of bytes for boards, counted by instructions: against the plain loops of their declarations, and against C written by hand."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import ansor
from ansor import te
from ansor.codegen.source import CSource
from ansor.measure.measurer import Candidate, Measurer
from ansor.schedule.sketch import Sketch
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor

BY_HAND = Path(__file__).parent
CORTEX_M4, RVV = "micro -board=mps2-an386", "micro -board=spike-rvv256"
RISCV32, RISCV64 = "micro -board=qemu-riscv32", "micro -board=qemu-riscv64"
TRIALS = 16

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]


def convolution() -> list[Tensor]:
    image = te.placeholder((1, 16, 16, 16), "int8", name="A")
    weights = te.placeholder((32, 3, 3, 16), "int8", name="W", constant=True)
    return [image, weights, te.nn.conv2d(image, weights, 1, 1, data_layout="NHWC", kernel_layout="OHWI", out_dtype="int32", name="C")]


def depthwise() -> list[Tensor]:
    image = te.placeholder((1, 25, 5, 64), "int8", name="A")
    weights = te.placeholder((3, 3, 1, 64), "int8", name="W", constant=True)
    return [image, weights, te.nn.conv2d(image, weights, 1, 1, groups=64, data_layout="NHWC", out_dtype="int32", name="C")]


def dense() -> list[Tensor]:
    data, weights = te.placeholder((1, 640), "int8", name="A"), te.placeholder((128, 640), "int8", name="W")
    return [data, weights, te.nn.dense(data, weights, out_dtype="int32", name="C")]


def pointwise() -> list[Tensor]:
    image = te.placeholder((1, 25, 5, 64), "int8", name="A")
    weights = te.placeholder((1, 1, 64, 64), "int8", name="W", constant=True)
    return [image, weights, te.nn.conv2d(image, weights, data_layout="NHWC", out_dtype="int32", name="C")]


def counted(task: SearchTask, source: CSource) -> float:
    """Instructions of one run, whose results are right."""
    with Measurer(task.target, None) as measurer, closing(measurer.measure([Candidate(task.measure_task, source, None)])) as results:
        (found,) = results
    assert found.failure is None and found.cost is not None, found.failure
    return found.cost


def tuned(task: SearchTask, trials: int = TRIALS) -> float:
    (state,) = ansor.tune_tasks([task], trials=trials)
    assert state.cost is not None
    return state.cost


def plain(task: SearchTask, entry: str = "plain") -> CSource:
    return task.source(Sketch(task.dag), (), entry)


@pytest.mark.parametrize(("workload", "file"), [(convolution, "conv_im2col_smlad.c"), (depthwise, "depthwise_smlad.c")], ids=["conv", "depthwise"])
def test_a_tuned_convolution_needs_no_more_instructions_than_one_by_hand(workload: Callable[[], list[Tensor]], file: str) -> None:
    task = SearchTask(workload, (), CORTEX_M4)
    by_hand = counted(task, replace(plain(task, "by_hand"), text=(BY_HAND / file).read_text()))
    assert tuned(task, 2 * TRIALS) <= by_hand


@pytest.mark.parametrize(
    ("workload", "target", "share"),
    [
        (convolution, CORTEX_M4, 0.45),
        (pointwise, CORTEX_M4, 0.45),
        (dense, CORTEX_M4, 0.55),
        (pointwise, RISCV32, 0.37),
        (pointwise, RISCV64, 0.25),
        (pointwise, RVV, 0.1),
        (dense, RVV, 0.15),
    ],
    ids=["conv", "pointwise", "dense", "riscv32", "riscv64", "rvv-pointwise", "rvv-dense"],
)
def test_tuning_takes_away_most_instructions_of_the_plain_loops(workload: Callable[[], list[Tensor]], target: str, share: float) -> None:
    task = SearchTask(workload, (), target)
    found, declared = tuned(task), counted(task, plain(task))
    assert found <= share * declared, (found, declared)


def test_the_dual_multiply_of_cortex_m_is_used_where_there_is_one() -> None:
    with_dsp, without = (ansor.auto_schedule(dense, target=f"micro -board={board}", trials=0).source for board in ("mps2-an386", "mps2-an385"))
    assert "_smlad(" in with_dsp and "_smlad(" not in without.replace("ANSOR_", "")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_helium_multiplies_vectors(dtype: str) -> None:
    """All values wrap as 32-bit arithmetic does; neighbours in memory are 16 bytes, wherever they begin."""
    data, weights = te.placeholder((3, 65), dtype, name="A"), te.placeholder((5, 65), dtype, name="W")
    k = te.reduce_axis((0, 64), name="k")
    product = te.compute((3, 5), lambda i, j: te.sum(data[i, k].astype("int32") * weights[j, k + 1].astype("int32"), axis=k), name="C")
    found = ansor.auto_schedule([data, weights, product], target="micro -board=mps3-an547", trials=4, progress=False)
    assert "vmladavaq" in found.source and found.cost is not None
