"""Fits the constants of ansor.search.expected_gain to record files, and shows how well they predict and how well the scheduler does with them.

    python benchmarks/expected_gain.py build/records/*.jsonl

Nothing is measured: recorded trials are replayed. It prints the constants (to be copied by hand), expected and observed gains, and the times that one network
of all these operators would have reached with three ways to share trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import common
import numpy as np
from numpy.typing import NDArray

from ansor.measure.record import load
from ansor.search.expected_gain import PATIENCE, SLOPE, expected_gain
from ansor.search.task_scheduler import TaskInfo, TaskScheduler
from ansor.support.text import counted

FEWEST = 64
"""Workloads with fewer trials are left out: they do not show how curves continue."""
STEP, AHEAD = 8, (16, 32, 64)
LONG = 64
"""The patience is fitted to moments after at least this many trials without a better program."""
PATIENCES: tuple[float, ...] = (16, 24, 32, 40, 48, 56, 64, 72, 80, 96, 128, 256, 1_000_000)
FOLDS = 8
BUDGETS = (500, 1000, 2000)
SHARES = (0.2, 0.4, 0.6)
"""Budgets of the replay: trials, and shares of the time that all recorded trials took."""
ROUND = 8

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curve:
    """A recorded run. best: seconds of the best program after each trial, infinite while none was valid; spent: seconds of tuning after each."""

    name: str
    best: Floats
    spent: Floats

    def since(self, trials: int) -> int:
        """The number of trials after the best of the first `trials`."""
        return trials - 1 - int(np.argmax(self.best == self.best[trials - 1]))


def curves_of(path: Path) -> Iterator[Curve]:
    """A curve for each workload of a file with enough trials."""
    records = load(path).records
    for workload in dict.fromkeys((record.workload, record.target) for record in records):
        found = [record for record in records if (record.workload, record.target) == workload]
        if len(found) >= FEWEST:
            best = np.minimum.accumulate([record.cost for record in found])
            yield Curve(path.stem, best, np.cumsum([record.elapsed for record in found]))


@dataclass(frozen=True, eq=False)
class Points:
    """Moments of all curves: what was known (`trials`, `since`), how many trials followed (`more`), the share they saved (`seen`). Curves have equal weight."""

    curve: NDArray[np.int64]
    trials: Floats
    since: Floats
    more: Floats
    seen: Floats
    weight: Floats


def points_of(curves: Sequence[Curve]) -> Points:
    """Every eighth trial of each curve, and the gain of the next 16, 32, 64 trials, as far as they were recorded."""
    rows = [
        (number, trials, curve.since(trials), more, 1 - curve.best[trials + more - 1] / curve.best[trials - 1])
        for number, curve in enumerate(curves)
        for trials in range(STEP, len(curve.best), STEP)
        for more in AHEAD
        if trials + more <= len(curve.best) and math.isfinite(curve.best[trials - 1])
    ]
    number, trials, since, more, seen = np.array(rows).T
    which = number.astype(np.int64)
    return Points(which, trials, since, more, seen, 1.0 / np.bincount(which)[which])


def predicted(points: Points, slope: float, patience: float) -> Floats:
    """`expected_gain` at all points, with these constants."""
    found: Floats = -np.expm1(-slope / (1 + (points.since / patience) ** 4) * np.log1p(points.more / points.trials))
    return found


def slope_of(points: Points, patience: float, among: NDArray[np.bool_]) -> float:
    """The slope at which the means of expected and observed gains agree, by bisection."""
    weight = points.weight * among
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if np.sum(weight * (predicted(points, middle, patience) - points.seen)) < 0 else (low, middle)
    return (low + high) / 2


def fitted(points: Points, among: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and patience fitted to some of the points: mean expected and observed gains agree over all, and over those long without a better program."""
    slopes = {patience: slope_of(points, patience, among) for patience in PATIENCES}
    late = among & (points.since >= LONG)

    def wrong(patience: float) -> float:
        excess = predicted(points, slopes[patience], patience) - points.seen
        return abs(float(np.sum(points.weight[late] * excess[late])))

    patience = min(PATIENCES, key=wrong)
    return slopes[patience], patience


def unseen(points: Points) -> Floats:
    """Expected gains of each operator with constants fitted to the others."""
    found = np.zeros_like(points.seen)
    for fold in range(FOLDS):
        here = points.curve % FOLDS == fold
        found[here] = predicted(points, *fitted(points, ~here))[here]
    return found


def in_use(points: Points) -> Floats:
    """Expected gains of all points with the package's constants."""
    return np.array([expected_gain(int(t), int(s), m) for t, s, m in zip(points.trials, points.since, points.more, strict=True)])


def show_calibration(points: Points, out: Callable[[object], None]) -> None:
    """Print mean gains, by the number of trials that followed, the number before, and the expected gain."""
    expected, held_out = in_use(points), unseen(points)
    shown = common.table("gain of the next trials, %", ["next", "after"], ["moments", "operators", "expected", "fitted to others", "observed", "no gain"])
    parts = [
        (f"{more}", text, (points.more == more) & among)
        for more in AHEAD
        for text, among in [
            *((f"{low} to {high - 1} trials", (points.trials >= low) & (points.trials < high)) for low, high in pairwise((8, 24, 40, 64, 104, 192))),
            (f"{PATIENCE} without a better one", points.since >= PATIENCE),
        ]
    ]
    edges = np.quantile(expected, (0, 0.2, 0.4, 0.6, 0.8, 1))
    edges[-1] += 1
    parts += [
        ("any", f"{100 * low:.1f} to {100 * min(high, expected.max()):.1f} % expected", (expected >= low) & (expected < high)) for low, high in pairwise(edges)
    ]
    for more, text, among in parts:
        if among.any():
            means = [100 * np.average(values[among], weights=points.weight[among]) for values in (expected, held_out, points.seen)]
            nothing = np.average(points.seen[among] <= 0, weights=points.weight[among])
            shown.add_row(more, text, str(int(among.sum())), str(len(set(points.curve[among]))), *(f"{mean:.2f}" for mean in means), f"{100 * nothing:.0f} %")
    out(shown)


# replay ---------------------------------------------------------------------------------------------------------------------------------------------


@dataclass
class Replay:
    """A network of all operators, each used once, tuned again from the records. `limit`: trials, or seconds of tuning if `by_time`."""

    curves: Sequence[Curve]
    limit: float
    by_time: bool = False

    def reached(self, shared: Callable[[Replay], Iterator[int]]) -> list[float]:
        """Best seconds of each operator at the end. A round takes as long as its trials took when they were recorded."""
        self.trials = [0] * len(self.curves)
        self.rounds: list[list[float]] = [[] for _ in self.curves]  # best seconds after each
        self.spent = 0.0
        size = ROUND if self.by_time else min(ROUND, max(1, int(self.limit) // (2 * len(self.curves))))
        for index in shared(self):
            curve, before = self.curves[index], self.trials[index]
            after = min(before + size, len(curve.best))
            after = after if self.by_time else min(after, before + int(self.limit - self.spent))
            self.trials[index] = after
            self.rounds[index].append(float(curve.best[after - 1]))
            self.spent += self.seconds(index, after) - self.seconds(index, before) if self.by_time else after - before
            if self.spent >= self.limit:
                break
        return [float(curve.best[max(trials, 1) - 1]) for curve, trials in zip(self.curves, self.trials, strict=True)]

    def seconds(self, index: int, trials: int) -> float:
        """Tuning time of the first trials of an operator."""
        return float(self.curves[index].spent[trials - 1]) if trials else 0.0

    def open(self) -> list[int]:
        """Operators with recorded trials left."""
        return [index for index, curve in enumerate(self.curves) if self.trials[index] < len(curve.best)]


def in_turns(replay: Replay) -> Iterator[int]:
    """Gives each operator the same number of trials."""
    while left := replay.open():
        yield min(left, key=lambda index: (replay.trials[index], index))


def by_trend(replay: Replay) -> Iterator[int]:
    """The formula of the Ansor paper: a fifth the trend of three rounds, four fifths best time / rounds. It ignores the cost of trials."""

    def gain(index: int) -> float:
        best = replay.rounds[index]
        trend = (best[-4] - best[-1]) / 3 if len(best) > 3 else 0.0
        return 0.2 * trend + 0.8 * best[-1] / len(best)

    while left := replay.open():
        fresh = [index for index in left if not replay.rounds[index]]
        yield fresh[0] if fresh else max(left, key=gain)


def by_expected_gain(replay: Replay) -> Iterator[int]:
    """The package's scheduler."""
    scheduler = TaskScheduler([TaskInfo() for _ in replay.curves])
    while (index := scheduler.next_task()) is not None:
        before = replay.trials[index]
        yield index
        curve, after = replay.curves[index], replay.trials[index]
        seconds = replay.seconds(index, after) - replay.seconds(index, before) if replay.by_time else None
        scheduler.told(index, float(curve.best[after - 1]), after - before, exhausted=after == len(curve.best), seconds=seconds)


def show_replay(curves: Sequence[Curve], out: Callable[[object], None]) -> None:
    """Print the sum of best times relative to that in the records, with the operators' own times, and with times scaled to be equal."""
    shown = common.table(f"one network of {counted(len(curves), 'operator')}: sum of best times / sum of all recorded best times", ["operators", "budget"],
                         ["equal shares", "by trend", "by expected gain"])  # fmt: skip
    equal = [Curve(curve.name, curve.best / curve.best[-1], curve.spent) for curve in curves]
    whole = sum(float(curve.spent[-1]) for curve in curves)
    limits = [(f"{trials} trials", float(trials), False) for trials in BUDGETS]
    limits += [(f"{share:.0%} of the time", share * whole, True) for share in SHARES]
    for title, network in (("as they are", curves), ("equally slow", equal)):
        least = sum(float(curve.best[-1]) for curve in network)
        for budget, limit, by_time in limits:
            sums = [sum(Replay(network, limit, by_time).reached(shared)) / least for shared in (in_turns, by_trend, by_expected_gain)]
            shown.add_row(title, budget, *(f"{ratio:.4f}" for ratio in sums))
    out(shown)


def main() -> None:
    """Print constants, calibration and replay."""
    options = common.parser(__doc__)
    options.add_argument("records", nargs="+", type=Path, metavar="RECORDS", help="record files of one or more operators")
    given = options.parse_args()
    out = common.console().print
    curves = [curve for path in given.records for curve in curves_of(path)]
    if not curves:
        options.error(f"asked to fit record files in which no workload has {FEWEST} trials or more; tune with --trials {FEWEST}")
    points = points_of(curves)
    slope, patience = fitted(points, np.ones(len(points.seen), bool))
    out(f"{counted(len(curves), 'curve')} of {FEWEST} trials or more, {len(points.seen)} moments")
    out(f"SLOPE = {slope:.3f}, PATIENCE = {patience:g}; in use: {SLOPE}, {PATIENCE}")
    show_calibration(points, out)
    show_replay(curves, out)


if __name__ == "__main__":
    main()
