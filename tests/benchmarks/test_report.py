"""The arithmetic of the summary, and what counts as missed."""

from __future__ import annotations

from pathlib import Path

import pytest
from report import Line, geomean, problems, results_table, summary
from results import Result
from rich.console import Console
from suite import ROWS

from tests.benchmarks.made_up import SETTINGS, made_up

pytestmark = pytest.mark.torch


def _summary(*rows: Result) -> dict[str, Line]:
    return {line.what: line for line in summary(ROWS, {row.name: row for row in rows})}


def test_geomean() -> None:
    assert geomean([1.0, 4.0]) == pytest.approx(2.0)
    assert geomean([]) is None


def test_means_are_over_fp32_rows() -> None:
    lines = _summary(made_up("matmul_128", eager=4.0, inductor=1.0), made_up("norm_256", eager=1.0), made_up("int8_matmul_512", eager=0.01, inductor=0.01))
    assert lines["geomean of fp32 rows against PyTorch eager"].value == pytest.approx(2.0)
    assert lines["geomean of fp32 rows against the best rival"].value == pytest.approx(1.0)
    assert lines["geomean of unusual operators against PyTorch eager"].value == pytest.approx(1.0)
    assert lines["worst fp32 row against PyTorch eager"].remark == "norm_256"
    assert [line.what for line in lines.values() if line.missed] == [
        "geomean of fp32 rows against the best rival", "geomean of unusual operators against PyTorch eager", "int8_matmul_512 against PyTorch eager",
    ]  # fmt: skip


@pytest.mark.parametrize(("ratio", "missed"), [(1.3, False), (1.29, True)])
def test_a_row_is_held_to_its_aim(ratio: float, missed: bool) -> None:
    assert _summary(made_up("resnet_3x3_64_64_56", eager=ratio))["resnet_3x3_64_64_56 against PyTorch eager"].missed is missed


@pytest.mark.parametrize(("seconds", "missed"), [(1.0 / 1.6, False), (1.0 / 1.5, True)])
def test_int8_is_held_against_fp32(seconds: float, missed: bool) -> None:
    line = _summary(made_up("matmul_512", 1.0), made_up("int8_matmul_512", seconds, eager=1.0))["our int8 matmul 512 against our fp32 matmul 512"]
    assert line.value == pytest.approx(1.0 / seconds) and line.missed is missed


def test_a_wrong_row_of_ours_is_missed_and_counts_nowhere() -> None:
    lines = _summary(made_up("matmul_128", eager=4.0, problem="WRONG: error 1"))
    assert [(line.what, line.missed) for line in lines.values()] == [("matmul_128: WRONG: error 1", True)]


def test_nothing_is_missed_where_nothing_was_run() -> None:
    assert _summary() == {}


def test_table_and_problems_show_what_failed() -> None:
    row = made_up("matmul_512", eager=0.5)
    console = Console(width=200)
    with console.capture() as captured:
        console.print(results_table("title", ROWS, {"matmul_512": row}, SETTINGS.rivals))
    (line,) = [line for line in captured.get().splitlines() if line.startswith("matmul_512")]
    assert "0.50 (0.45 .. 0.55)" in line and "failed" in line and "0.97 MISSED" in line
    assert problems([row]) == ["matmul_512, inductor: failed: no reason"]


def test_plot_is_the_same_each_time_and_names_every_row(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from plot import draw

    results = {row.name: made_up(row.name, eager=1.5, inductor=30.0) for row in ROWS[:4]}
    for name in ("first.svg", "second.svg"):
        draw(tmp_path / name, ROWS, results, SETTINGS.rivals, "title")
    text = (tmp_path / "first.svg").read_text()
    assert text == (tmp_path / "second.svg").read_text()
    assert all(row.name.replace("_", " ") in text for row in ROWS[:4])
