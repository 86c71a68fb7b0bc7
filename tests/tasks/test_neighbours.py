"""Records of other shapes."""

from __future__ import annotations

import json

from ansor import te
from ansor.measure.record import Record, frozen
from ansor.tasks.neighbours import Neighbour, neighbours_of
from ansor.tasks.task import SearchTask
from ansor.te.tensor import Tensor
from ansor.zoo.operators import matmul

ONE = "cpu -threads=1"


def other_names(n: int, m: int, k: int) -> list[Tensor]:
    x, y = te.placeholder((n, k), name="X"), te.placeholder((k, m), name="Y")
    r = te.reduce_axis((0, k), name="r")
    return [x, y, te.compute((n, m), lambda p, q: te.sum(x[p, r] * y[r, q], axis=r), name="Z")]


def vector_sum(n: int) -> list[Tensor]:
    x, r = te.placeholder((n,), name="x"), te.reduce_axis((0, n), name="r")
    return [x, te.compute((1,), lambda i: te.sum(x[r], axis=r), name="s")]


def of(task: SearchTask, count: int) -> list[Record]:
    space = task.spaces[0]
    sketch = frozen(json.loads(space.name))
    return [Record(task.workload_key, str(task.target), sketch, (0,) * len(space.sizes), (1.0,), algorithm=space.algorithm)] * count


def test_other_shapes_are_found_whatever_their_names() -> None:
    task, one, two, other = (SearchTask(function, args, ONE) for function, args in (
        (matmul, (16, 16, 16)), (matmul, (32, 16, 8)), (other_names, (8, 8, 8)), (vector_sum, (64,))))  # fmt: skip
    records = [*of(task, 5), *of(one, 1), *of(two, 2), *of(other, 3)]
    found = neighbours_of(task, records, {one.workload_key: "small"})
    assert found == [Neighbour(two.workload_key, two.workload_key[:8], 2), Neighbour(one.workload_key, "small", 1)]


def test_none_of_its_own() -> None:
    task = SearchTask(matmul, (16, 16, 16), ONE)
    assert neighbours_of(task, of(task, 2), {}) == []
