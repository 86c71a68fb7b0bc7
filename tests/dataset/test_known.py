"""Which operators the package's model learned from."""

import pytest

from ansor.dataset.known import is_learned
from ansor.dataset.operators import DatasetTask, dataset_tasks
from ansor.dataset.split import HELD_OUT, fold_of
from ansor.te import compute, placeholder, reduce_axis
from ansor.te import sum as te_sum
from ansor.te.tensor import Tensor
from ansor.te.workloads import matmul


def first(learned: bool) -> DatasetTask:
    return next(task for task in dataset_tasks() if (fold_of(task) != HELD_OUT) == learned and "epilogue" in dict(task.sizes))


def test_tasks_that_were_learned_from_are_known_and_held_out_ones_are_not() -> None:
    assert is_learned(first(True).declare())
    assert not is_learned(first(False).declare())


@pytest.mark.parametrize("epilogue", [1, 2])
def test_an_epilogue_more_is_another_operator(epilogue: int) -> None:
    task = first(True)
    sizes = dict(task.sizes) | {"epilogue": epilogue, "channels": 7}
    assert not is_learned(DatasetTask(task.kind, task.network, tuple(sizes.items()), task.base).declare())


def matmul_with_swapped_operands(size: int) -> list[Tensor]:
    a, b, k = placeholder((size, size), name="p"), placeholder((size, size), name="q"), reduce_axis(size, name="k")
    return [a, b, compute((size, size), lambda i, j: te_sum(b[k, j] * a[i, k], axis=k), name="r")]


def test_it_does_not_matter_how_a_declaration_is_written() -> None:
    learned = [size for size in (127, 255, 512, 1000) if is_learned(matmul(size, size, size))]
    assert learned == [size for size in (127, 255, 512, 1000) if is_learned(matmul_with_swapped_operands(size))]
    assert learned and len(learned) < 4
