"""What the built-in model has learned from."""

import pytest

from ansor.cost_model.base import read_document
from ansor.cost_model.pretrained import weights_of
from ansor.dataset.known import FAMILY, NOTHING, OPERATOR, PARTS, is_learned, known_to_model
from ansor.dataset.operators import DatasetTask, dataset_tasks
from ansor.dataset.split import HELD_OUT, fold_of
from ansor.targets.prior import PROCESSORS
from ansor.te import compute, nn, placeholder, reduce_axis
from ansor.te import sum as te_sum
from ansor.te.tensor import Tensor
from ansor.te.workloads import matmul


def first(learned: bool) -> DatasetTask:
    return next(task for task in dataset_tasks() if (fold_of(task) != HELD_OUT) == learned and "epilogue" in dict(task.sizes))


def test_training_tasks_are_known_and_held_out_ones_are_not() -> None:
    assert is_learned(first(True).declare())
    assert not is_learned(first(False).declare())


@pytest.mark.parametrize("epilogue", [1, 2])
def test_an_additional_epilogue_makes_another_operator(epilogue: int) -> None:
    task = first(True)
    sizes = dict(task.sizes) | {"epilogue": epilogue, "channels": 7}
    assert not is_learned(DatasetTask(task.kind, task.network, tuple(sizes.items()), task.base).declare())


def matmul_with_swapped_operands(size: int) -> list[Tensor]:
    a, b, k = placeholder((size, size), name="p"), placeholder((size, size), name="q"), reduce_axis(size, name="k")
    return [a, b, compute((size, size), lambda i, j: te_sum(b[k, j] * a[i, k], axis=k), name="r")]


def test_notation_does_not_matter() -> None:
    learned = [size for size in (127, 255, 512, 1000) if is_learned(matmul(size, size, size))]
    assert learned == [size for size in (127, 255, 512, 1000) if is_learned(matmul_with_swapped_operands(size))]
    assert learned and len(learned) < 4


def test_the_model_records_no_more_tasks_than_those() -> None:
    about = read_document(weights_of(PROCESSORS))["about"]
    assert isinstance(about, dict) and 0 < about["tasks"] <= sum(fold_of(task) != HELD_OUT for task in dataset_tasks())


def test_degrees_of_knowledge() -> None:
    a, b = placeholder((48, 32), name="a"), placeholder((32, 40), name="b")
    assert known_to_model(first(True).declare()) == OPERATOR
    assert known_to_model(first(False).declare()) == FAMILY
    assert known_to_model(matmul(123, 45, 67)) == FAMILY
    assert known_to_model([a, b, nn.softmax(nn.matmul(a, b))]) == PARTS  # no task had this product followed by this softmax
    k = reduce_axis(32, "k")
    assert known_to_model([a, b, compute((48, 40), lambda i, j: te_sum((a[i, k] - b[k, j]) * (a[i, k] - b[k, j]), axis=k))]) == NOTHING
