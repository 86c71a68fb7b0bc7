"""What notebooks show: small tables with every text escaped, and a notebook that runs."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat
import pytest

import ansor
from ansor import te
from ansor.te.tensor import Tensor

ROOT = Path(__file__).resolve().parents[1]
ONE = "cpu -threads=1"
HOSTILE = "<script>alert(1)</script>"


def row_sums(n: int) -> list[Tensor]:
    a, k = te.placeholder((n, n), name="A"), te.reduce_axis((0, n), name="k")
    return [a, te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")]


def shown(thing: object) -> str:
    """What a notebook shows of it; nothing there may run, load, or be large."""
    text = getattr(thing, "_repr_html_")()  # noqa: B009  (no type has it)
    assert isinstance(text, str) and "<script" not in text and "src=" not in text and "style" not in text.partition("<details>")[0] and len(text) < 100_000
    return text


def test_tasks_and_sketches() -> None:
    task = ansor.SearchTask(row_sums, (16,), ONE, name=HOSTILE)
    assert "&lt;script&gt;" in shown(task) and shown(task).count("<tr>") == len(task.spaces) + 1
    space = task.spaces[0]
    assert shown(space) == shown(space.sketch) and all(f"<td>{choice.name}</td>" in shown(space) for choice in space.sketch.choices)


@pytest.mark.compiler
def test_kernels_and_programs() -> None:
    kernel = ansor.auto_schedule(ansor.SearchTask(row_sums, (16,), ONE, name=HOSTILE))
    assert "<td>A</td><td>input</td><td>float32</td><td>16 x 16</td>" in shown(kernel) and "&lt;script&gt;" in shown(kernel)
    assert "<summary>C</summary>" in shown(kernel) and "#include &lt;" in shown(kernel)
    program = ansor.auto_schedule(row_sums, (16,), "arm")
    assert isinstance(program, ansor.Program) and "<td>output</td>" in shown(program)


@pytest.mark.compiler
@pytest.mark.torch
def test_networks(tmp_path: Path) -> None:
    import torch

    net = ansor.compile(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval(), (torch.ones(2, 4),), ONE, library=False)
    assert "<td>a kernel</td>" in shown(net) and "CompiledNetwork(" in shown(net)
    assert "<td>input</td><td>float32</td><td>2 x 4</td>" in shown(ansor.load(net.save(tmp_path / "net")))


@pytest.mark.compiler
def test_reports(tmp_path: Path) -> None:
    from ansor.report.runs import read_run
    from ansor.report.sections import make_report
    from ansor.report.values import TaskFacts
    from tests.commands.record_files import recorded

    file = recorded(tmp_path / "r.jsonl", ansor.SearchTask(row_sums, (16,), ONE, name=HOSTILE))
    report = make_report(read_run([file]), None, lambda task: TaskFacts(1.0, None), lambda where: None)
    assert "<td>1 ms</td><td>3</td><td>100.0 %</td>" in shown(report) and "&lt;script&gt;" in shown(report)


@pytest.mark.compiler
def test_the_notebook_runs(tmp_path: Path) -> None:
    notebook = nbformat.read(ROOT / "examples" / "operator.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    for cell in notebook.cells:
        cell.source = cell.source.replace("trials=64", "trials=3")
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert not any(output.output_type == "error" for output in outputs)
    html = "".join(output.data.get("text/html", "") for output in outputs if "data" in output)
    assert "SearchTask(matmul" in html and "Kernel(matmul" in html and 'class="dataframe"' in html
