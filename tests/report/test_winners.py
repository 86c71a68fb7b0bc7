"""The best recorded program, reproduced."""

from __future__ import annotations

from pathlib import Path

import pytest

import ansor
from ansor.explain.explanation import moved_bytes
from ansor.report.runs import read_run
from ansor.report.values import Winner
from ansor.report.winners import winner_of
from ansor.zoo.operators import matmul
from tests.report.trials import TASK, trial, trials, write


def test_the_best_program_has_loops_words_and_c(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", trials())
    found = winner_of(TASK, [str(path)], read_run([path]).tasks[0].where)
    assert isinstance(found, Winner)
    assert (found.flop, found.bytes, found.cost) == (2 * 16**3, 3 * 16 * 16 * 4, 1e-6)
    texts = dict(found.texts)
    assert list(texts) == ["Loops", "C", "Why it is fast"]
    assert "for " in texts["Loops"] and "void" in texts["C"] and "matmul(16, 16, 16) for cpu" in texts["Why it is fast"]
    assert found.schedule and found.tiles and all(text.startswith("16 = ") for _, _, text in found.tiles)


def test_the_best_of_several_files_is_shown(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.jsonl", trials()), write(tmp_path / "b.jsonl", [trial(5e-7)])]
    found = winner_of(TASK, list(map(str, files)), read_run(files).tasks[0].where)
    assert isinstance(found, Winner) and found.cost == 5e-7 and "8 trials" in dict(found.texts)["Why it is fast"]


@pytest.mark.parametrize(
    "target,costs,words",
    [
        ("cpu -mcpu=native -threads=1 (Other family 1, zig cc 0.1)", (1e-6,), "not shown here: the trials are made on another processor"),
        ("cpu -mcpu=native -threads=7 (Other family 1, zig cc 0.1)", (1e-6,), "Its trials are not for cpu"),
        ("", (None,), "No valid trial can be reproduced by this version"),
    ],
)
def test_programs_that_cannot_be_reproduced_are_reported(tmp_path: Path, target: str, costs: tuple[float | None, ...], words: str) -> None:
    records = [one._replace(target=target or one.target) for one in trials(costs)]
    path = write(tmp_path / "a.jsonl", records)
    found = winner_of(TASK, [str(path)], read_run([path]).tasks[0].where)
    assert isinstance(found, str) and words in found


def test_bytes_of_all_arguments() -> None:
    task = ansor.SearchTask(matmul, (2, 3, 4), "cpu -threads=1")
    assert moved_bytes(task.dag) == 4 * (2 * 4 + 4 * 3 + 2 * 3)
