"""Constants are found again in curves made by them; the replay spends what it is given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from expected_gain import PATIENCES, Curve, Replay, by_expected_gain, by_trend, curves_of, fitted, in_turns, points_of

SLOPE, PATIENCE = 0.05, 72
SLOW, FAST = 1.0, 0.01


def _curve(seconds: float, trials: int, stuck_at: int = 10_000, pace: float = 1.0) -> Curve:
    counted = np.arange(1.0, trials + 1)
    since = np.maximum(counted - stuck_at, 0)
    steps = SLOPE / (1 + (since / PATIENCE) ** 4) * np.diff(np.log(counted), prepend=0.0)
    return Curve("made up", seconds * np.exp(-np.cumsum(np.where(counted > stuck_at, 0.0, steps))), pace * counted)


def test_the_slope_of_curves_without_standstill_is_found() -> None:
    points = points_of([_curve(SLOW, 64), _curve(FAST, 200)])
    slope, _ = fitted(points, np.ones(len(points.seen), bool))
    assert slope == pytest.approx(SLOPE, rel=1e-6)


def test_who_stands_still_for_good_is_not_waited_for() -> None:
    points = points_of([_curve(SLOW, 200, stuck_at=40), _curve(SLOW, 200)])
    assert fitted(points, np.ones(len(points.seen), bool))[1] == min(PATIENCES)


@pytest.mark.parametrize("shared", [in_turns, by_trend, by_expected_gain])
def test_a_replay_spends_its_trials(shared: object) -> None:
    replay = Replay([_curve(SLOW, 64), _curve(FAST, 64), _curve(FAST, 64)], 100)
    replay.reached(shared)  # type: ignore[arg-type]  # one of three functions
    assert sum(replay.trials) == 100 and (shared is in_turns or replay.trials[0] == 64)


def test_by_time_the_cheap_one_of_two_equals_gets_more() -> None:
    replay = Replay([_curve(SLOW, 64, pace=4.0), _curve(SLOW, 64)], 150, by_time=True)
    replay.reached(by_expected_gain)
    assert replay.trials[1] > replay.trials[0] > 0


def test_a_file_without_records_has_no_curve(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text("")
    assert list(curves_of(tmp_path / "r.jsonl")) == []
