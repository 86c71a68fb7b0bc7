import pytest

from ansor.dataset.operators import dataset_tasks
from ansor.dataset.split import FOLDS, WAYS, fold_of, splits
from ansor.errors import AnsorError

TASKS = dataset_tasks()


@pytest.mark.parametrize("way", WAYS)
def test_each_task_is_held_out_exactly_once(way: str) -> None:
    found = list(splits(TASKS, way))
    assert sorted(place for split in found for place in split.held_out) == list(range(len(TASKS)))
    for split in found:
        assert sorted([*split.learned, *split.held_out]) == list(range(len(TASKS)))


def test_training_and_held_out_tasks_share_nothing() -> None:
    for way, attribute in (("task", "base"), ("kind", "kind"), ("network", "network")):
        for split in splits(TASKS, way):
            learned, held_out = ({getattr(TASKS[place], attribute) for place in places} for places in (split.learned, split.held_out))
            assert learned.isdisjoint(held_out)


def test_epilogues_of_one_convolution_share_a_fold() -> None:
    folds: dict[tuple[object, ...], set[int]] = {}
    for task in TASKS:
        if task.base == task.name:
            folds.setdefault((task.kind, *(size for size in task.sizes if size[0] != "epilogue")), set()).add(fold_of(task))
    assert len(folds) < sum(task.base == task.name for task in TASKS), "such convolutions exist"
    assert all(len(found) == 1 for found in folds.values())


def test_folds_have_similar_sizes() -> None:
    counts = [sum(fold_of(task) == fold for task in TASKS) for fold in range(FOLDS)]
    assert sum(counts) == len(TASKS) and min(counts) > len(TASKS) / FOLDS / 2


def test_unknown_ways_are_refused() -> None:
    with pytest.raises(AnsorError, match="asked to split a data set by 'colour'; use one of task, kind, network"):
        list(splits(TASKS, "colour"))
