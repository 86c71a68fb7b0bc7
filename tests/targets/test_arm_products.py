"""Products of matrices for ARM, counted by instructions: against one written by hand, and with the instructions for bytes against floats."""

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
from ansor.targets.base import parse_target
from ansor.tasks.task import SearchTask
from ansor.te import workloads
from ansor.te.tensor import Tensor

BY_HAND = Path(__file__).with_name("gemm_8x12.c")
SIZE, TRIALS = 256, 16
MORE = 1.15
"""Instructions, of those by hand."""

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("emulators")]


def counted(task: SearchTask, source: CSource) -> float:
    """Instructions of one run, whose results are right."""
    with Measurer(task.target, None) as measurer, closing(measurer.measure([Candidate(task.measure_task, source, None)])) as results:
        (found,) = results
    assert found.failure is None and found.cost is not None, found.failure
    return found.cost


def tuned(workload: Callable[..., list[Tensor]], target: str, trials: int = TRIALS) -> float:
    """Instructions of the best of a few programs."""
    task = SearchTask(workload, (SIZE, SIZE, SIZE), target)
    (state,) = ansor.tune_tasks([task], trials=trials)
    assert state.cost is not None
    return state.cost


def byte_product(n: int, m: int, k: int) -> list[Tensor]:
    a, b = te.placeholder((n, k), "int8", name="A"), te.placeholder((k, m), "int8", name="B")
    return [a, b, te.nn.matmul(a, b, out_dtype="int32", name="C")]


@pytest.fixture(scope="module")
def floats(emulators: None) -> float:
    return tuned(workloads.matmul, "arm -mcpu=cortex-a76")


def test_a_tuned_product_needs_hardly_more_instructions_than_one_by_hand(floats: float) -> None:
    task = SearchTask(workloads.matmul, (SIZE, SIZE, SIZE), parse_target("arm -mcpu=cortex-a76"))
    sketch = task.spaces[0].sketch
    plain = task.source(sketch, [0] * len(sketch.choices), "gemm_8x12")
    packed = 4 * (SIZE * SIZE + SIZE * (SIZE + 12))
    by_hand = counted(task, replace(plain, text=BY_HAND.read_text(), workspace_bytes=packed))
    assert floats <= MORE * by_hand, (floats, by_hand)


@pytest.mark.parametrize(("processor", "share"), [("cortex-a76", 0.4), ("neoverse-v1", 0.25)], ids=["sdot", "smmla"])
def test_bytes_need_a_fraction_of_what_floats_need(floats: float, processor: str, share: float) -> None:
    assert tuned(byte_product, f"arm -mcpu={processor}", TRIALS // 2) <= share * floats
