"""Charts as positions."""

from __future__ import annotations

from itertools import combinations

from ansor.explain.values import Roof
from ansor.report.charts import CURVE_BOTTOM, LABEL, LEFT, MOST_FAILURES, MOST_NUMBERS, RIGHT, ROOF_BOTTOM, TOP, curve, roofline
from ansor.report.values import CostScope, Entry, Section, TaskFacts, TunedWorkload, Winner
from ansor.targets.unit import INSTRUCTIONS, SECONDS

HERE = CostScope("cpu", "local", SECONDS)


def entry(
    number: int = 1, costs: tuple[float | None, ...] = (4.0, None, 2.0), flop: int = 1000, bytes: int = 100, before: TunedWorkload | None = None,
) -> Entry:  # fmt: skip
    task = TunedWorkload(f"w{number}", f"task {number}", HERE, costs, ())
    return Entry(number, task, TaskFacts(1.0, Winner(flop, bytes, task.best or 1.0, (), (), ())), 1.0, before)


def corners(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.split())]


def test_a_curve_steps_down_and_ends_at_the_last_trial() -> None:
    chart = curve(entry(costs=(4.0, None, 2.0, 3.0)))
    line = corners(chart.now)
    assert len(line) == 4 and line[-1][0] == RIGHT and line[0][1] < line[-1][1] < CURVE_BOTTOM  # pixels count downwards, and the cost falls
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in zip(line, line[1:], strict=False))
    assert chart.failed.count("M") == 1 and not chart.before


def test_curves_of_two_runs_share_their_axes() -> None:
    other = TunedWorkload("w1", "task 1", HERE, (8.0, 1.0), ())
    chart = curve(entry(before=other))
    assert corners(chart.before)[-1][1] > corners(chart.now)[-1][1] and corners(chart.before)[-1][0] < RIGHT


def test_a_task_without_valid_trials_only_has_failure_marks() -> None:
    chart = curve(entry(costs=(None, None)))
    assert not chart.now and not chart.marks and chart.failed.count("M") == 2
    assert curve(entry(costs=(None,) * 5000)).failed.count("M") <= MOST_FAILURES


def test_costs_in_another_unit_are_written_in_it() -> None:
    task = TunedWorkload("w", "task", CostScope("cpu", "qemu", INSTRUCTIONS), (4e6, 1e6), ())
    assert {mark.text for mark in curve(Entry(1, task, TaskFacts(1.0, None), 1.0, None)).marks} >= {"2.00 M", "3.00 M"}


def test_close_costs_have_digits_that_tell_them_apart() -> None:
    task = TunedWorkload("w", "task", CostScope("cpu", "qemu", INSTRUCTIONS), (91312.0, 91304.0), ())
    marks = [mark.text for mark in curve(Entry(1, task, TaskFacts(1.0, None), 1.0, None)).marks]
    assert len(set(marks)) == len(marks) > 2 and "91,310" in marks
    seconds = [mark.text for mark in curve(entry(costs=(7.23201e-6, 7.23204e-6))).marks]
    assert len(set(seconds)) == len(seconds) > 2 and all(text.endswith(" us") for text in seconds)


def test_kernels_are_under_a_known_roof() -> None:
    section = Section(HERE, (entry(1, (1e-7,), 1000, 100), entry(2, (1e-6,), 1000, 1000), entry(3, (2e-7,), 1000, 1000)), Roof(10.0, 2.0))
    chart = roofline(section)
    assert chart is not None
    bound, slow, cached = chart.points
    roof = corners(chart.roof)
    assert bound.y == roof[-1][1] == roof[-2][1] and "100 % of the roof" in bound.text
    assert "1 operations a byte, 5 GFLOP/s, above the slope: its data stay in a cache" in cached.text
    assert slow.y > bound.y and slow.x < bound.x and "1 operations a byte, 1 GFLOP/s, 50 % of the roof" in slow.text


def test_without_a_roof_or_programs_there_is_no_roofline() -> None:
    assert roofline(Section(HERE, (entry(),), None)) is None
    unknown = Entry(1, entry().task, TaskFacts(1.0, None), 1.0, None)
    assert roofline(Section(HERE, (unknown,), Roof(10.0, 2.0))) is None


def test_numbers_cover_neither_each_other_nor_points() -> None:
    section = Section(HERE, tuple(entry(k, (1e-7 * (1 + k / 100),), 1000, 100 + k) for k in range(1, 21)), Roof(10.0, 2.0))
    chart = roofline(section)
    assert chart is not None and len(chart.points) == 20
    numbered = [point for point in chart.points if point.number]
    assert len(numbered) == MOST_NUMBERS
    for one, other in combinations(numbered, 2):
        assert max(abs(one.label_x - other.label_x), abs(one.label_y - other.label_y)) > 2 * LABEL
    for one in numbered:
        assert LEFT < one.label_x < RIGHT and TOP < one.label_y < ROOF_BOTTOM
        assert all(max(abs(one.label_x - point.x), abs(one.label_y - point.y)) > LABEL for point in chart.points)
