"""What to compute may be given as a function, a name, tensors or a task; what does not fit is told in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ansor
from ansor import te
from ansor.commands.subject import OperatorSubject, resolve
from ansor.errors import AnsorError, ArgumentError, DeclarationError
from ansor.tasks.extracted import ExtractedTasks
from ansor.te.tensor import Tensor
from ansor.zoo.catalogue import OPERATORS

ONE = "cpu -threads=1"


def product(n: int, m: int, k: int) -> list[Tensor]:
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]


FORMS: dict[str, Callable[[], ansor.SearchTask]] = {
    "function": lambda: ansor.SearchTask(product, (4, 5, 6), ONE),
    "name": lambda: ansor.SearchTask("matmul", (4, 5, 6), ONE),
    "list": lambda: ansor.SearchTask(product(4, 5, 6), (), ONE),
    "tuple": lambda: ansor.SearchTask(tuple(product(4, 5, 6)), (), ONE),
    "tensor": lambda: ansor.SearchTask(product(4, 5, 6)[-1], (), ONE),
    "a function of one tensor": lambda: ansor.SearchTask(lambda: product(4, 5, 6)[-1], (), ONE),
    "keyword": lambda: ansor.SearchTask(tensors=product(4, 5, 6), target=ONE),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_task(form: str) -> None:
    task = FORMS[form]()
    assert task.workload_key == FORMS["function"]().workload_key, "records of one are records of all: README's matmul is the command's"
    assert [tensor.name for tensor in task.tensors] == ["A", "B", "C"]


def test_inputs_of_a_tensor_come_in_the_order_of_reading_and_once() -> None:
    x, y = te.placeholder((4,), name="x"), te.placeholder((4,), name="y")
    first = te.compute((4,), lambda i: y[i] + x[i], name="first")
    last = te.compute((4,), lambda i: first[i] * x[i] + y[i], name="last")
    assert [tensor.name for tensor in ansor.SearchTask(last).tensors] == ["y", "x", "last"]


@pytest.mark.parametrize("name", OPERATORS)
def test_names_of_the_command_are_names_in_python(name: str) -> None:
    subject = resolve(name)
    assert isinstance(subject, OperatorSubject)
    assert ansor.SearchTask(name).workload_key == ansor.SearchTask(subject.function, subject.args).workload_key


def test_a_registered_function_comes_before_the_built_in_one_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansor.tasks.workloads._workloads", {"softmax": lambda: product(2, 2, 2)})
    assert ansor.SearchTask("softmax").workload_key == ansor.SearchTask(product, (2, 2, 2)).workload_key


@pytest.mark.parametrize(
    ("func", "args", "sentence"),
    [
        (product, (64, 64), r"asked for product with args=\(64, 64\), but it takes n, m, k: missing a required argument: 'k'; give one value for each"),
        (product, (1, 2, 3, 4), "too many positional arguments"),
        ([1, 2], (), "which is a list; give a function that returns tensors"),
        (3, (), "which is a int; give a function"),
        (None, (), "asked to schedule None"),
        ("matmull", (), r"did you mean matmul\?"),
        ("nothing_like_it", (), "built in are matmul"),
        (product(2, 2, 2), (4,), "tensors take no arguments"),
        ([product(2, 2, 2)[0], 3], (), "returned a list of Tensor, int"),
        (lambda: [1], (), "returned a list of int; it has to return the list"),
        (lambda: None, (), "returned a NoneType; it has to return the list"),
    ],
)
def test_what_does_not_fit_is_told(func: Any, args: tuple[object, ...], sentence: str) -> None:
    with pytest.raises(DeclarationError, match=sentence):
        ansor.auto_schedule(func, args)


def test_exceptions_of_the_function_itself_pass() -> None:
    with pytest.raises(ZeroDivisionError):
        ansor.SearchTask(lambda n: [n // 0], (4,))


def test_a_task_brings_everything_along() -> None:
    task = ansor.SearchTask("matmul", (4, 4, 4), ONE)
    for beside in ({"args": (8, 8, 8)}, {"target": "cpu -threads=2"}, {"rules": ("skip_stage",)}, {"pins": [ansor.Pin("C*.j", 4)]}):
        with pytest.raises(ArgumentError, match="a SearchTask has its own"):
            ansor.auto_schedule(task, **beside)


@pytest.mark.compiler
def test_without_a_budget_nothing_is_measured() -> None:
    kernel = ansor.auto_schedule(ansor.SearchTask("matmul", (4, 5, 6), ONE))
    assert kernel.latency_s is None
    a, b = np.ones((4, 6), np.float32), np.ones((6, 5), np.float32)
    np.testing.assert_array_equal(kernel(a, b), a @ b)


def test_tasks_are_taken_as_they_are_extracted() -> None:
    wrongs: list[Any] = [3, [3], ([], []), "matmul"]
    for wrong in wrongs:
        with pytest.raises(AnsorError, match="asked to tune a .*; give SearchTasks"):
            ansor.tune_tasks(wrong, trials=1)
    task = ansor.SearchTask("matmul", (4, 4, 4), ONE)
    several: Any = [ExtractedTasks([task], [2])]
    with pytest.raises(ArgumentError, match=r"asked to tune a list of ExtractedTasks.*; give all their tasks in one list, and all their weights in another"):
        ansor.tune_tasks(several, trials=1)
    with pytest.raises(ArgumentError, match="1 task with 2 weights"):
        ansor.tune_tasks(task, [1, 2], trials=1)
    assert ansor.tune_tasks([], trials=1) == []
