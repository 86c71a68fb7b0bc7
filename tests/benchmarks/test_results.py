"""A run that was stopped goes on where it was, and a half line costs its row only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from operators import error_of, wrong
from results import OURS, append, done, from_line, load, newest, to_line
from rivals import Ready

from tests.benchmarks.made_up import SETTINGS, made_up

pytestmark = pytest.mark.torch


def test_a_row_reads_back() -> None:
    row = made_up("matmul_512", eager=1.5, inductor=1.2)
    assert from_line(to_line(row)) == row
    assert "\n" not in to_line(row)


def test_no_file_is_no_row(tmp_path: Path) -> None:
    assert load(tmp_path / "nothing.jsonl") == []


def test_a_torn_line_is_skipped_and_spoils_nothing_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "rows.jsonl"
    first, second, third = (made_up(name) for name in ("one", "two", "three"))
    append(path, first)
    path.write_text(path.read_text() + to_line(second)[:40])
    append(path, third)
    assert load(path) == [first, third]


def test_done_are_the_newest_rows_of_the_same_settings() -> None:
    old, new, other = made_up("one", eager=1.0), made_up("one", eager=2.0), made_up("one", settings=replace(SETTINGS, trials=64))
    assert done([old, new, other], SETTINGS) == {"one": new}
    assert done([old], replace(SETTINGS, rivals=("eager",))) == {}


def test_newest_takes_any_settings_of_the_target() -> None:
    one, other, elsewhere = made_up("one"), made_up("one", settings=replace(SETTINGS, trials=64)), made_up("one", settings=replace(SETTINGS, target="cpu"))
    assert newest([one, other, elsewhere], SETTINGS.target) == {"one": other}


def test_rates_and_ratios() -> None:
    row = made_up("one", seconds=1e-3, eager=2.0, inductor=1.25)
    assert row.gflops(OURS) == pytest.approx(1.0)
    assert row.share("eager") == pytest.approx(0.005)
    assert (row.ratio("eager"), row.ratio("inductor"), row.best_ratio()) == (2.0, 1.25, 1.25)
    assert row.ratio(OURS) is None and row.ratio("onnxruntime") is None


def test_a_side_that_failed_is_no_rival() -> None:
    assert made_up("one", eager=2.0).best_ratio() == 2.0
    assert made_up("one", eager=2.0, problem="WRONG").best_ratio() is None


def test_errors() -> None:
    import torch

    exact = torch.tensor([1.0, -4.0]).double()

    def error(*values: float) -> float:
        return error_of(Ready(lambda: None, lambda: torch.tensor(values)), exact)

    assert error(1.0, -4.0) == 0.0
    assert error(1.0, -3.0) == 0.25
    assert error(1.0, float("nan")) == error(1.0) == float("inf")
    assert wrong(0.25, fp32=True).startswith("WRONG") and not wrong(1e-6, fp32=True)
    assert wrong(1e-6, fp32=False).startswith("WRONG") and not wrong(0.0, fp32=False)
