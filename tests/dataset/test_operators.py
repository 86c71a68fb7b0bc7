import subprocess
import sys

import pytest

from ansor.dataset.operators import KINDS, MAX_FLOP, DatasetTask, dataset_tasks
from ansor.ir.dag import Dag

TASKS = dataset_tasks()


def test_every_kind_has_enough_tasks_without_duplicates() -> None:
    assert len(TASKS) >= 300 and len(KINDS) >= 12
    assert len({task.name for task in TASKS}) == len(TASKS)
    assert {task.kind for task in TASKS[: 3 * len(KINDS)]} == set(KINDS), "the first tasks include all kinds"
    assert all(sum(task.kind == kind for task in TASKS) >= 5 for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_they_can_be_declared(kind: str) -> None:
    for task in [task for task in TASKS if task.kind == kind]:
        flop = Dag(task.declare()).flop
        assert flop > 0 and (task.base == task.name or flop <= MAX_FLOP), task.name


def test_neighbours_have_the_network_of_their_base() -> None:
    of = {task.name: task for task in TASKS}
    for task in TASKS:
        assert of[task.base].network == task.network and of[task.base].kind == task.kind and of[task.base].base == task.base


def test_the_same_seed_gives_the_same_tasks_in_any_process() -> None:
    program = "from ansor.dataset.operators import dataset_tasks; print(*(task.name for task in dataset_tasks()))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"})
    assert said.stdout.split() == [task.name for task in TASKS]
    assert dataset_tasks(seed=1) != TASKS


def test_names_contain_the_sizes() -> None:
    assert DatasetTask("softmax", "gpt", (("rows", 4), ("columns", 5)), "").name == "softmax-rows4-columns5"
