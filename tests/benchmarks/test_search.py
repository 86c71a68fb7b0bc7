import json
import math
from dataclasses import asdict
from pathlib import Path

import pytest
from curve import Curve
from search import beside, load, missing, shares

from ansor.targets.base import parse_target

TARGET = parse_target("cpu -mcpu=znver3 -threads=1")


def curve(operator: str, search: str, seed: int, best: tuple[float, ...]) -> Curve:
    return Curve(operator, search, seed, str(TARGET), "some", best, tuple(float(k + 1) for k in range(len(best))))


def test_the_best_so_far_by_trials_and_by_seconds() -> None:
    one = curve("matmul", "random", 0, (4.0, 2.0, 1.0))
    assert [one.at_trial(count) for count in (1, 2, 3, 100)] == [4.0, 2.0, 1.0, 1.0]
    assert [one.at(seconds) for seconds in (0.5, 1.0, 2.5, 60.0)] == [float("inf"), 4.0, 2.0, 1.0]


def test_shares_are_of_the_best_of_all_runs() -> None:
    curves = [curve("a", "random", 0, (4.0, 2.0)), curve("a", "pretrained", 0, (1.0, 1.0))]
    curves += [curve("b", "random", 0, (8.0, 8.0)), curve("b", "pretrained", 0, (4.0, 2.0))]
    found = shares(curves, lambda one: one.at_trial(2))
    assert found["random"][0] == pytest.approx((1 / 2 * 2 / 8) ** 0.5) and found["pretrained"] == (1.0, 0.0)
    seeds = [curve("a", "random", seed, (float(seed + 1),)) for seed in range(2)]
    assert list(shares(seeds, lambda one: one.at_trial(1))["random"]) == pytest.approx([0.75, 0.5**0.5 / 2])


def test_runs_that_are_there_are_not_missing() -> None:
    done = [curve("matmul", "random", 0, (1.0, 1.0)), curve("matmul", "evolution", 0, (1.0,))]
    wanted = [("matmul", search, 0) for search in ("random", "evolution", "pretrained")]
    assert list(missing(done, wanted, 2, TARGET)) == wanted[1:]


def test_runs_are_compared_with_those_of_the_same_operator_and_seed() -> None:
    curves = [curve("a", "pretrained", 0, (2.0,)), curve("b", "pretrained", 0, (1.0,))]
    curves += [curve("a", "round 4", 0, (1.0,)), curve("b", "round 4", 0, (8.0,)), curve("b", "round 4", 1, (1.0,))]
    found = beside(curves, "pretrained", lambda one, other: other.best[-1] / one.best[-1])
    mean, error, pairs = found["round 4"]
    assert list(found) == ["round 4"] and pairs == 2
    assert mean == pytest.approx(0.5) and error == pytest.approx(math.log(16) / math.sqrt(2) / math.sqrt(2))


def test_of_two_runs_of_one_kind_the_longer_counts(tmp_path: Path) -> None:
    runs = [curve("a", "random", 0, best) for best in ((4.0, 2.0), (4.0, 2.0, 1.0), (4.0,))]
    path = tmp_path / "search.jsonl"
    path.write_text("".join(json.dumps(asdict(one)) + "\n" for one in runs))
    assert load(path) == [runs[1]]
