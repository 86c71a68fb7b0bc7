"""A sketch that was written and read is the same one: its steps, the meaning of its rows, and what a search goes by."""

import json

import numpy as np
import pytest

from ansor.algorithms.base import DIRECT
from ansor.errors import ScheduleError
from ansor.schedule.sketch_data import sketch_data, sketch_of
from ansor.tasks.own_parts import declaration_named
from ansor.tasks.task import SearchTask
from ansor.te import workloads


@pytest.mark.parametrize(("workload", "args"), [("matmul", (96, 48, 40)), ("conv2d", (1, 14, 14, 16, 16, 3, 1, 1))])
def test_every_sketch_reads_back(workload: str, args: tuple[int, ...]) -> None:
    task = SearchTask(getattr(workloads, workload), args, "cpu -threads=2")
    for space in task.spaces:
        dag = declaration_named(task, space.algorithm)
        assert dag is space.sketch.dag
        again = sketch_of(dag, json.loads(json.dumps(sketch_data(space.sketch))))
        assert again.name == space.name
        row = [size - 1 for size in space.sizes.tolist()]
        assert again.concrete_steps(row) == space.sketch.concrete_steps(row)
        for one, other in zip(again.choices, space.sketch.choices, strict=True):
            assert (one.kind, one.extent, one.numbers) == (other.kind, other.extent, other.numbers)
            assert np.array_equal(one.weights, other.weights) if one.weights is not None and other.weights is not None else one.weights is other.weights
    assert declaration_named(task, "no such algorithm") is None
    assert declaration_named(task, DIRECT) is task.dag


def test_other_data_is_refused() -> None:
    with pytest.raises(ScheduleError):
        sketch_of(SearchTask(workloads.matmul, (8, 8, 8)).dag, {"steps": [["no step"]], "choices": []})
