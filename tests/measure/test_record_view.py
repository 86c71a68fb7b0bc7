"""Record files as data frames and in notebooks."""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from ansor.errors import RecordError
from ansor.measure.failure import Failure
from ansor.measure.record import Loaded, Record, RecordFile, foreign_header, load
from ansor.targets.unit import INSTRUCTIONS

RECORDS = (
    Record("w" * 32, "cpu", [["SP", "C", "i", "t", 4]], (1, 2), (2e-6, 4e-6, 3e-6), timestamp=1767225600.5, seed=7, round=2),
    Record("w" * 32, "cpu", [], (0, 0), (), Failure("crash", "<b>SIGSEGV</b>"), algorithm="winograd_f4"),
    Record("v" * 32, "arm", [], (5,), (5000.0,), unit=INSTRUCTIONS, device="qemu-aarch64", counters=(("loads", 12.0),), measured_by="qemu-aarch64 on host7"),
)


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    with RecordFile(tmp_path / "r.jsonl", foreign_header("here")) as file:
        for record in RECORDS:
            file.append(record)
    return load(tmp_path / "r.jsonl")


def test_a_row_for_each_trial(loaded: Loaded) -> None:
    frame = loaded.to_pandas()
    assert len(frame) == 3 and list(frame["workload"]) == [one.workload for one in RECORDS] and list(frame["row"]) == [(1, 2), (0, 0), (5,)]
    assert frame["cost"][0] == 3e-6 and math.isnan(frame["cost"][1]) and list(frame["failure"]) == ["", "crash", ""]
    assert list(frame["unit"]) == ["seconds", "seconds", "instructions"] and list(frame["repeats"]) == [3, 0, 1] and frame["algorithm"][1] == "winograd_f4"
    assert str(frame["timestamp"][0]) == "2026-01-01 00:00:00.500000+00:00" and frame["counter loads"][2] == 12.0 and math.isnan(frame["counter loads"][0])
    assert list(frame["measured_by"]) == ["", "", "qemu-aarch64 on host7"]
    assert frame.groupby("workload")["cost"].min().to_dict() == {"v" * 32: 5000.0, "w" * 32: 3e-6}


def test_an_empty_file_has_an_empty_frame(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    frame = load(tmp_path / "empty.jsonl").to_pandas()
    assert len(frame) == 0 and "cost" in frame


def test_without_pandas(loaded: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def refuse(name: str, names: Mapping[str, object] | None = None, *rest: object) -> object:
        if name == "pandas":
            raise ImportError(name)
        return usual(name, names, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(RecordError, match=r"^asked for a data frame, which needs pandas; install it: pip install 'ansor\[pandas\]'$"):
        loaded.to_pandas()


def test_in_a_notebook(loaded: Loaded) -> None:
    text = loaded._repr_html_()
    assert "Loaded(3 records of 2 workloads)" in text and "<td>crash 1</td>" in text and "5 k instructions" in text.replace("5.00", "5")
