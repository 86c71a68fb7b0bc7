"""Products of matrices for ARM, counted by instructions: against one written by hand, and with the instructions for bytes against floats."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import ansor
from ansor.codegen.source import CSource
from ansor.measure.measurer import Candidate, Measurer
from ansor.targets.base import parse_target
from ansor.tasks.task import SearchTask
from ansor.te import workloads

BY_HAND = Path(__file__).with_name("gemm_8x12.c")
SIZE = 256
MORE = 1.15
"""Instructions, of those by hand."""

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("emulators")]


def counted(task: SearchTask, source: CSource) -> float:
    """Instructions of one run, whose results are right."""
    with Measurer(task.target, None) as measurer, closing(measurer.measure([Candidate(task.measure_task, source, None)])) as results:
        (found,) = results
    assert found.failure is None and found.cost is not None, found.failure
    return found.cost


def test_a_tuned_product_needs_hardly_more_instructions_than_one_by_hand() -> None:
    task = SearchTask(workloads.matmul, (SIZE, SIZE, SIZE), parse_target("arm -mcpu=cortex-a76"))
    sketch = task.spaces[0].sketch
    plain = task.source(sketch, [0] * len(sketch.choices), "gemm_8x12")
    packed = 4 * (SIZE * SIZE + SIZE * (SIZE + 12))
    by_hand = counted(task, replace(plain, text=BY_HAND.read_text(), workspace_bytes=packed))
    (state,) = ansor.tune_tasks([task], trials=32)
    assert state.cost is not None and state.cost <= MORE * by_hand, (state.cost, by_hand)
