"""Templates beside the rules: what is searched, who won, and that records of such runs serve again."""

from pathlib import Path

import numpy as np
import pytest

import ansor
from ansor import autotvm
from ansor.cli import main
from ansor.errors import ArgumentError, ConfigError, DeclarationError
from ansor.explain.explanation import explain
from ansor.explain.text import explanation_text
from ansor.measure.kernel import Kernel
from ansor.measure.record import load
from ansor.run.program import Program
from ansor.tasks.origins import RULES
from ansor.tasks.recorded import recorded_outcomes
from ansor.tasks.template_programs import Template
from ansor.te.tensor import Tensor
from ansor.templates.template import _templates
from tests.autotvm.templates import matmul as template

ONE = "cpu -threads=1"
SIZES = (24, 32, 16)
LABEL = "template 'tests/matmul'"


def matmul(n: int, m: int, k: int) -> list[Tensor]:
    """What the template declares."""
    return list(autotvm.task.collect("tests/matmul", (n, m, k))[1][1])


def right(kernel: Kernel | Program) -> bool:
    n, m, k = SIZES
    a, b = np.random.default_rng(0).random((n, k), np.float32), np.random.default_rng(1).random((k, m), np.float32)
    return bool(np.allclose(np.asarray(kernel(a, b)), a @ b, rtol=1e-4))


def test_the_name_of_a_template_is_no_workload() -> None:
    with pytest.raises(DeclarationError, match=r"'tests/matmul', which is a template: give the decorated function .*, or templates=\['tests/matmul'\]"):
        ansor.auto_schedule("tests/matmul", SIZES)


@pytest.mark.parametrize("given", ["tests/matmul", template, autotvm.task.create("tests/matmul", SIZES, "llvm")])
def test_templates_are_searched_beside_the_rules(given: Template) -> None:
    plain = ansor.SearchTask(matmul, SIZES, ONE)
    task = ansor.SearchTask(matmul, SIZES, ONE, templates=[given])
    assert [space.name for space in task.spaces[:-2]] == [space.name for space in plain.spaces] and not any(space.algorithm for space in task.spaces[:-2])
    assert [space.algorithm for space in task.spaces[-2:]] == [LABEL] * 2 and all(space.sketch.dag is task.dag for space in task.spaces)
    assert task.workload_key == plain.workload_key


def test_a_template_that_is_named_twice_is_searched_once() -> None:
    once, twice = (ansor.SearchTask(matmul, SIZES, ONE, rules=(), templates=["tests/matmul"] * times) for times in (1, 2))
    assert len(once.spaces) == len(twice.spaces)


def test_templates_alone() -> None:
    beside_nothing, itself = ansor.SearchTask(matmul, SIZES, ONE, rules=(), templates=[template]), ansor.SearchTask(template, SIZES, ONE)
    assert [space.name for space in beside_nothing.spaces] == [space.name for space in itself.spaces] and len(itself.spaces) == 2
    assert beside_nothing.workload_key == itself.workload_key and itself.name == "matmul(24, 32, 16)"
    both = ansor.SearchTask(template, SIZES, ONE, rules=beside_nothing.target.rules)
    assert {space.algorithm for space in both.spaces} == {"", LABEL}


@pytest.mark.compiler
def test_who_won_is_said_and_records_serve_again(tmp_path: Path) -> None:
    said: list[str] = []
    path = tmp_path / "r.jsonl"
    kernel = ansor.auto_schedule(matmul, SIZES, ONE, trials=6, templates=[template], records=path, report=said.append)
    best = {"": 1.0, LABEL: 1.0}
    for record in load(path).records:
        best[record.algorithm] = min(best[record.algorithm], record.cost)
    winner = kernel.origin
    assert best["" if winner == RULES else winner] == min(best.values()), "they may be as fast as each other"
    assert max(best.values()) < 1.0, "one of each is measured first"
    (line,) = [line for line in said if "best:" in line]
    assert line.startswith(f"matmul(24, 32, 16): best: {winner} ") and "; best of " in line
    assert right(kernel)

    kernel.save(tmp_path / "saved")
    assert Kernel.load(tmp_path / "saved").origin == winner

    again = ansor.auto_schedule(matmul, SIZES, ONE, trials=0, templates=[template], records=path)
    assert (again.origin, again.latency_s) == (winner, kernel.latency_s)
    of_template = ansor.auto_schedule(template, SIZES, ONE, trials=0, records=path)
    assert (of_template.origin, of_template.latency_s) == (LABEL, best[LABEL]) and right(of_template)
    schedule, tensors = ansor.SearchTask(template, SIZES, ONE).apply_best(path)
    assert not schedule.choices and len(tensors) == 3 and str(schedule).startswith("Split(stage='C', loop='i', lengths=(")
    without = ansor.SearchTask(matmul, SIZES, ONE)
    ours = sum(not record.algorithm for record in load(path).records)
    assert recorded_outcomes(without, path).left_out == {f"programs of {LABEL}, which are not searched here": 6 - ours}
    assert recorded_outcomes(ansor.SearchTask(template, SIZES, ONE), path).left_out == {f"programs of {RULES}, which are not searched here": ours}


@pytest.mark.compiler
def test_the_command_takes_a_template(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("ansor.commands.tune", "ansor.run.progress"):
        monkeypatch.setattr(f"{place}.peak_gflops", lambda target: None)
    file, path = tmp_path / "mine.py", tmp_path / "r.jsonl"
    file.write_text(
        "import ansor\nfrom ansor import autotvm, te\n\n@autotvm.template('tests/doubled')\ndef doubled(n=64):\n    a = te.placeholder((n,), name='A')\n"
        "    c = te.compute((n,), lambda i: a[i] * 2.0, name='C')\n    s = ansor.create_schedule(c.op)\n    cfg = autotvm.get_config()\n"
        "    cfg.define_split('tile', s[c].op.axis[0], num_outputs=2)\n    cfg['tile'].apply(s, c, s[c].op.axis[0])\n    return s, [a, c]\n"
    )
    assert main(["tune", str(file), "--threads", "1", "--trials", "3", "--records", str(path)]) == 0
    assert [record.algorithm for record in load(path).records] == ["template 'tests/doubled'"] * 3
    capsys.readouterr()
    monkeypatch.delitem(_templates, "tests/doubled")  # as in another process
    assert main(["show", str(path), str(file), "--threads", "1"]) == 0
    assert ", by template 'tests/doubled'\n" in capsys.readouterr().out


@pytest.mark.compiler
def test_a_template_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    ansor.auto_schedule(template, SIZES, ONE, trials=3, records=path)
    task = ansor.SearchTask(template, SIZES, ONE)
    found = explain(task, [outcome for outcome, _ in recorded_outcomes(task, path).known])
    assert found.best.algorithm == LABEL and f"How: by {LABEL}" in explanation_text(found)


def test_mistakes_are_explained() -> None:
    with pytest.raises(ConfigError, match="asked for a program of task 'tests/nobody', which is not registered"):
        ansor.SearchTask(matmul, SIZES, ONE, templates=["tests/nobody"])
    with pytest.raises(DeclarationError, match="asked for the template <function matmul .*>, which is not a template; decorate it"):
        ansor.SearchTask(matmul, SIZES, ONE, templates=[matmul])
    with pytest.raises(DeclarationError, match=r"asked for template 'tests/matmul' with the arguments \(\): missing .* it takes .n: int, m: int, k: int."):
        ansor.SearchTask(tensors=matmul(*SIZES), templates=[template])
    with pytest.raises(ArgumentError, match="asked for templates='tests/matmul'; give a list of templates"):
        ansor.SearchTask(matmul, SIZES, ONE, templates="tests/matmul")
    with pytest.raises(DeclarationError, match="takes and gives"):
        _ = ansor.SearchTask(matmul, SIZES, ONE, templates=[autotvm.task.create("tests/matmul", (8, 8, 8), "llvm")]).spaces
