"""The tasks of a network."""

import pytest

from ansor import api
from ansor.auto_scheduler import LayoutRewriteOption, extract_tasks
from ansor.tasks.task import SearchTask
from ansor.te import workloads


def test_tasks_of_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SearchTask(tensors=workloads.matmul(4, 16, 8), target="cpu -threads=1", name="linear")
    monkeypatch.setattr(api, "extract_tasks", lambda model, inputs: ([found], [2]))
    (task,), weights = extract_tasks("a module", (), "llvm -threads=1")
    assert weights == [2] and task.layout_rewrite_option == LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
    assert task.compute_dag.dag.key == found.workload_key and task.desc == "linear" and task.local_target.threads == 1
