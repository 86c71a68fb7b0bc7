"""Two record files beside each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansor.cli import main
from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.toolchain import find_compiler
from ansor.measure.failure import Failure
from ansor.measure.record import Record, RecordFile, make_header
from ansor.targets.unit import INSTRUCTIONS

NAMES = {"w" * 40: "matmul", "v" * 40: "conv"}


def written(path: Path, *records: Record) -> str:
    with RecordFile(path, make_header(CToolchain(find_compiler()), names=NAMES)) as file:
        for record in records:
            file.append(record)
    return str(path)


def trial(workload: str, *costs: float, **fields: object) -> Record:
    return Record(workload * 40, "cpu -threads=1", (), (len(costs),), costs, **fields)  # type: ignore[arg-type]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    failed = trial("w", failure=Failure("crash", "SIGSEGV"))
    first = written(tmp_path / "a.jsonl", trial("w", 4e-6), trial("w", 2e-6), failed, trial("v", 3e-6), trial("u", 1e-6))
    counted = trial("v", 5000.0, unit=INSTRUCTIONS)
    return first, written(tmp_path / "b.jsonl", trial("w", 1e-6), trial("v", 6e-6), counted)


def test_the_table(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *files]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"A: {files[0]}, 5 trials for cpu -threads=1" and lines[1].startswith(f"B: {files[1]}, 3 trials")
    rows = [line.split() for line in lines[3:-1]]
    assert [row[0] for row in rows] == ["conv", "matmul", "uuuuuuuu", "conv"]  # the worst first; then those of one file alone
    assert rows[0][5] == "0.50" and rows[1][5:] == ["2.00", "3", "and", "1"]
    assert lines[-1] == "B is 1.00 times as fast as A: geometric mean over 2 workloads, not weighted by how often a network uses each"


def test_json(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *files, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["files"] == list(files) and found["mean_ratio"] == pytest.approx(1.0)
    assert found["workloads"][0] == {"workload": "v" * 40, "name": "conv", "unit": "seconds", "costs": [3e-6, 6e-6], "trials": [1, 1], "ratio": 0.5}
    assert found["workloads"][-1]["costs"] == [None, 5000.0] and found["workloads"][-1]["ratio"] is None


def test_names_are_shown_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(NAMES, "w" * 40, "heads[a][/b]")
    file = written(tmp_path / "a.jsonl", trial("w", 1e-6))
    for command in (["compare", file, file], ["show", file]):
        assert main(command) == 0
        assert "heads[a][/b]" in capsys.readouterr().out


def test_files_that_have_nothing_in_common(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = written(tmp_path / "a.jsonl", trial("w", 1e-6)), written(tmp_path / "b.jsonl", trial("v", 1e-6))
    assert main(["compare", first, second]) == 1
    assert "no workload has a valid program in both files, so nothing is compared; tune the same workloads" in capsys.readouterr().err
    assert main(["compare", first, second, "--json"]) == 1 and json.loads(capsys.readouterr().out)["mean_ratio"] is None


@pytest.mark.parametrize(
    ("content", "sentence"), [(None, "is not there"), ("", "which holds no trials; name a file that `ansor tune` wrote")]
)
def test_mistakes(content: str | None, sentence: str, files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "c.jsonl"
    if content is not None:
        other.write_text(content)
    assert main(["compare", files[0], str(other)]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and any(part in said for part in sentence.split("|")), said
