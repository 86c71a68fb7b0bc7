"""The cycle model beside a roofline: what is counted of programs, how orders are compared, and what is printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ansor.targets.base import parse_target
from benchmarks import vta_model
from benchmarks.vta_model import GROUPS, Measured, measured, plotted, rank_correlation, ranks, summary, turned
from benchmarks.vta_template import Layer

pytestmark = pytest.mark.compiler
SMALL = Layer("small", 8, 32, 32, 3, 1, 1)
ONE = Measured(cycles=120, bus=100, compute=50, operand_copies=2, sum_copies=1, bytes_each=512.0, seconds=0.1)


def with_times(*pairs: tuple[int, int]) -> list[Measured]:
    """Programs of these rooflines and cycles."""
    return [replace(ONE, bus=roofline, cycles=cycles) for roofline, cycles in pairs]


@pytest.fixture(scope="module")
def programs() -> list[Measured]:
    return list(measured(SMALL, parse_target("vta"), 12, np.random.default_rng(0)))


def test_programs_take_no_less_than_their_roofline(programs: list[Measured]) -> None:
    assert len(programs) >= 12
    for one in programs:
        assert one.cycles >= one.roofline == max(one.bus, one.compute) >= 8 * 8 * 9 * 2 * 2  # a micro-op each for block by block
        assert {one.operand_copies, one.sum_copies} <= {1, 2} and one.bytes_each > 0 and one.seconds >= 0


def test_the_same_programs_come_again(programs: list[Measured]) -> None:
    again = list(measured(SMALL, parse_target("vta"), 12, np.random.default_rng(0)))
    assert [replace(one, seconds=0) for one in again] == [replace(one, seconds=0) for one in programs]


def test_ranks() -> None:
    assert ranks([30, 10, 10, 40]).tolist() == [2, 0.5, 0.5, 3]
    assert rank_correlation([1, 2, 3, 4], [10, 20, 90, 1000]) == pytest.approx(1) and rank_correlation([1, 2, 3], [9, 4, 1]) == pytest.approx(-1)
    values = np.random.default_rng(1).integers(0, 9, (2, 40))
    shared = [[np.mean([place for place, one in enumerate(sorted(row)) if one == value]) for value in row] for row in values]
    assert rank_correlation(values[0].tolist(), values[1].tolist()) == pytest.approx(np.corrcoef(shared[0], shared[1])[0, 1])


def test_pairs_that_are_turned() -> None:
    assert turned(with_times((100, 200), (200, 300), (400, 500))) == 0
    assert turned(with_times((100, 300), (200, 250), (400, 500))) == pytest.approx(1 / 3)
    assert turned(with_times((100, 300), (105, 250))) == 0  # too near to each other to tell


def test_a_line_for_each_group(programs: list[Measured]) -> None:
    table = summary(programs)
    names, numbers, medians = ([*column.cells] for column in table.columns[:3])
    assert names == [name for name, _ in GROUPS] and numbers[0] == str(len(programs)) and float(str(medians[0])) >= 1
    for (_, of), number, median in zip(GROUPS, numbers, medians, strict=True):
        count = sum(map(of, programs))
        assert number == str(count) and bool(median) == (count >= 10)


def test_a_point_for_each_program(programs: list[Measured], tmp_path: Path) -> None:
    plotted(programs, tmp_path / "points.svg")
    said = (tmp_path / "points.svg").read_text()
    doubled = sum(one.operand_copies == 2 and one.sum_copies == 2 for one in programs)
    assert said.startswith("<svg ") and said.count("<circle") == len(programs) and said.count('fill="#36c"') == doubled


def test_what_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(vta_model, "LAYERS", (SMALL,))
    monkeypatch.setattr("sys.argv", ["vta_model.py", "small", "--programs", "10"])
    vta_model.main()
    said = capsys.readouterr().out
    assert "M cycles a second of processor time" in said and "nearest to the roofline: Measured(" in said and "two copies of all" in said
    monkeypatch.setattr("sys.argv", ["vta_model.py", "C99"])
    with pytest.raises(SystemExit):
        vta_model.main()
    assert "asked for C99; layers are small" in capsys.readouterr().err
