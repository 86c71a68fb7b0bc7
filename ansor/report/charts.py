"""Charts as positions and labels, which the page draws. They are as wide as a narrow phone, so that labels are never small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap

from ansor.explain.values import Roof
from ansor.report.axes import Axis, cost_axis
from ansor.report.values import Entry, Section, TunedWorkload
from ansor.targets.unit import SECONDS, Unit

WIDTH, LEFT, RIGHT, TOP = 360, 62, 350, 12
CURVE_BOTTOM, CURVE_HEIGHT = 160, 204
ROOF_BOTTOM, ROOF_HEIGHT = 238, 282
MOST_DECIMALS = 7
ABOVE = 1.05
"""A kernel this far above the slope did not wait for memory."""

LABEL = 9.0
"""Half the side of the square for a number next to a point."""

MOST_FAILURES = 500
"""The most marks for failed trials; if there are more, only every second, third ... one is drawn."""


MOST_NUMBERS = 16
"""The most kernels with a number on the roofline. The most expensive ones have one."""


@dataclass(frozen=True)
class Mark:
    """A position on an axis, with its label."""

    at: float
    text: str


@dataclass(frozen=True)
class Curve:
    """The best cost so far over the trials. now, before: `points` of the lines, or ""; failed: a path with the failed trials."""

    marks: tuple[Mark, ...]
    trials: tuple[Mark, ...]
    now: str
    before: str
    failed: str


@dataclass(frozen=True)
class Point:
    """A kernel on the roofline. Its number, "" if it has none, is at (label_x, label_y)."""

    number: str
    x: float
    y: float
    label_x: float
    label_y: float
    text: str


@dataclass(frozen=True)
class Roofline:
    """The roofline with its kernels. roof: the `points` of the line."""

    marks: tuple[Mark, ...]
    intensities: tuple[Mark, ...]
    roof: str
    points: tuple[Point, ...]


def curve(entry: Entry) -> Curve:
    """The tuning curve of a task, with that of the other run if there is one."""
    runs = [one for one in (entry.task, entry.before) if one is not None]
    costs = [cost for one in runs for _, cost in one.steps]
    across = Axis(0, max(len(one.costs) for one in runs), LEFT, RIGHT)
    up = cost_axis(min(costs), max(costs), CURVE_BOTTOM, TOP) if costs else None
    return Curve(
        () if up is None else tuple(starmap(Mark, zip(map(up.place, up.marks), _cost_texts(entry.task.where.unit, up.marks), strict=True))),
        tuple(Mark(across.place(value), f"{value:g}") for value in across.marks if value == int(value)),
        _steps(entry.task, across, up),
        "" if entry.before is None else _steps(entry.before, across, up),
        _failed(entry.task, across),
    )


def _cost_texts(unit: Unit, values: Sequence[float]) -> list[str]:
    """The texts of costs, with as many digits as tell them apart."""
    texts = [_cost_text(unit, value) for value in values]
    scale, name = (1e6, " us") if unit == SECONDS else (1.0, "")
    for decimals in range(MOST_DECIMALS):
        if len(set(texts)) == len(values):
            break
        texts = [f"{scale * value:,.{decimals}f}{name}" for value in values]
    return texts


def _cost_text(unit: Unit, value: float) -> str:
    """The text of a cost, without its unit if the figure's title has the unit."""
    return unit.text(value) if unit == SECONDS else unit.text(value).removesuffix(f" {unit.name}")


def _steps(task: TunedWorkload, across: Axis, up: Axis | None) -> str:
    if up is None or not task.steps:
        return ""
    corners: list[tuple[float, float]] = []
    for number, cost in task.steps:
        x, y = across.place(number), up.place(cost)
        corners += [(x, corners[-1][1]), (x, y)] if corners else [(x, y)]
    return _line([*corners, (across.place(len(task.costs)), corners[-1][1])])


def _failed(task: TunedWorkload, across: Axis) -> str:
    failed = task.failed[:: 1 + len(task.failed) // MOST_FAILURES]
    return " ".join(f"M{across.place(number)} {CURVE_BOTTOM}v-5" for number in failed)


def roofline(section: Section) -> Roofline | None:
    """The best program of every kernel under the target's roof. None if the roof or every program is unknown."""
    known = [(entry, winner) for entry in section.entries if (winner := entry.known.winner) is not None and winner.flop and winner.bytes]
    if section.roof is None or not known:
        return None
    roof = section.roof
    kernels = [(entry, winner.flop / winner.bytes, winner.flop / winner.cost / 1e9) for entry, winner in known]
    intensities, rates = [x for _, x, _ in kernels], [y for _, _, y in kernels]
    across = Axis(min(*intensities, roof.knee) / 2, max(*intensities, roof.knee) * 2, LEFT, RIGHT, True)
    up = Axis(min(*rates, roof.gflops / 8) / 2, max(*rates, roof.gflops) * 2, ROOF_BOTTOM, TOP, True)
    return Roofline(
        tuple(Mark(up.place(value), f"{value:g}") for value in up.marks),
        tuple(Mark(across.place(value), f"{value:g}") for value in across.marks),
        _roof(roof, across, up),
        tuple(_labelled([(entry, across.place(x), up.place(y), _kernel_text(entry, x, y, roof)) for entry, x, y in kernels])),
    )


def _roof(roof: Roof, across: Axis, up: Axis) -> str:
    first = max(across.low, up.low / roof.gbytes)
    bounds = ((x, roof.at(x)) for x in (first, roof.knee, across.high))
    return _line([(across.place(x), up.place(y)) for x, y in bounds])


def _kernel_text(entry: Entry, intensity: float, rate: float, roof: Roof) -> str:
    share = rate / roof.at(intensity)
    near = f"{100 * share:.0f} % of the roof" if share < ABOVE or rate > roof.gflops else "above the slope: its data stay in a cache"
    return f"{entry.number}: {entry.task.name}: {intensity:.3g} operations a byte, {rate:.3g} GFLOP/s, {near}"


def _labelled(points: Sequence[tuple[Entry, float, float, str]]) -> Iterator[Point]:
    """The points. The first ones have numbers, each at the nearest position that covers no other number and no point."""
    taken = [(x, y, 4.0) for _, x, y, _ in points]
    for k, (entry, x, y, text) in enumerate(points):
        if k >= MOST_NUMBERS:
            yield Point("", x, y, x, y, text)
            continue
        free = (place for place in _around(x, y) if all(abs(place[0] - a) > LABEL + r or abs(place[1] - b) > LABEL + r for a, b, r in taken))
        label = next(free, (x, y - 13))
        taken.append((*label, LABEL))
        yield Point(str(entry.number), x, y, *label, text)


def _around(x: float, y: float) -> Iterator[tuple[float, float]]:
    """Positions within the chart around a point, nearest first."""
    directions = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1))
    for distance in (14, 22, 30, 40, 52, 66, 82, 100):
        for right, below in directions:
            place = round(x + right * distance, 1), round(y + below * distance, 1)
            if LEFT + LABEL <= place[0] <= RIGHT - LABEL and TOP + LABEL <= place[1] <= ROOF_BOTTOM - LABEL:
                yield place


def _line(corners: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in corners)
