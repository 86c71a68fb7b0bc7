"""Health by itself: what suspends a device, and what brings it back."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ansor.farm.health import FEWEST, KEPT, MOST_LOST, OTHERS, WELL_AGAIN, Health, stands_out
from ansor.measure.device import Observation
from ansor.measure.failure import KINDS, LINK, Failure
from ansor.measure.machine_trouble import KIND as MACHINE
from ansor.targets.unit import SECONDS

WELL = Observation((1.0,), SECONDS)


def after(costs: Sequence[float | Failure], health: Health | None = None) -> Health:
    health = health or Health()
    for cost in costs:
        health = health.after_canary(cost)
    return health


def test_a_slow_canary_suspends_it_and_usual_ones_bring_it_back() -> None:
    slow = after([1.0, 1.05, 0.95, 2.0])
    assert "2.00 times as long as usual" in slow.suspended and slow.costs.usual == 1.0
    assert after([1.0] * (WELL_AGAIN - 1), slow).suspended and not after([1.0] * WELL_AGAIN, slow).suspended
    assert after([1.0, 2.0] * WELL_AGAIN, slow).suspended  # in a row


def test_what_is_nearly_as_usual_is_usual() -> None:
    assert not after([1.0, 1.1, 1.14, 1.0]).suspended


def test_a_canary_that_fails_suspends_it() -> None:
    assert after([1.0, Failure("crash", "SIGSEGV")]).suspended == "its canary program failed: crash: SIGSEGV"


def test_noise_suspends_it() -> None:
    falling = [1.0, 0.9, 0.75, 0.7, 0.65, 0.6]
    assert len(falling) == FEWEST and "varies by" in after(falling).suspended and not after(falling[:-1]).suspended


def test_noise_says_nothing_of_what_is_usual() -> None:
    noisy = after([1.0] * FEWEST + [0.6, 0.7, 0.6])
    assert "varies by" in noisy.suspended
    well = after([0.9] * WELL_AGAIN, noisy)
    assert not well.suspended and well.costs.usual == 1.0


def test_a_device_that_slows_down_little_by_little_is_found() -> None:
    assert "times as long as usual" in after([1.01**number for number in range(100)]).suspended


def test_what_is_usual_falls_and_never_rises() -> None:
    usual = [after([1.0] * KEPT + [0.99**number for number in range(count)]).costs.usual for count in range(20)]
    assert usual == sorted(usual, reverse=True) and usual[-1] < 0.95
    assert after([1.0] * KEPT + [1.1] * 100).costs.usual == 1.0


def test_a_permanent_change_has_its_cure_and_a_device_that_was_always_slower_has_not() -> None:
    assert after([1.0, 2.0]).suspended.endswith("; if that is its speed now, restart its worker")
    assert "restart" not in after([1.0]).after_canary(2.0, OTHERS).suspended


def test_only_so_many_are_kept() -> None:
    assert len(after([1.0] * (KEPT + 5)).costs.recent) == KEPT


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != MACHINE])
def test_failures_of_the_link_in_a_row_suspend_it_and_others_do_not(kind: str) -> None:
    health = Health()
    for _ in range(MOST_LOST):
        assert not health.suspended
        health = health.after_run(Failure(kind, "why"))
    assert bool(health.suspended) == (kind in LINK)


def test_trouble_of_the_machine_suspends_it_at_once() -> None:
    assert Health().after_run(Failure(MACHINE, "no space left")).suspended == "its machine is in trouble: no space left"


def test_a_run_that_succeeds_starts_the_count_anew() -> None:
    health = Health()
    for _ in range(10):
        for _ in range(MOST_LOST - 1):
            health = health.after_run(Failure("link_lost", "why"))
        health = health.after_run(WELL)
    assert not health.suspended


def test_one_that_is_slower_than_the_others_stands_out_and_one_alone_does_not() -> None:
    assert stands_out(2.0, (1.0, 1.0)) and stands_out(2.0, (1.0,)) and not stands_out(1.1, (1.0, 1.0)) and not stands_out(0.5, (1.0, 1.0))
    assert not stands_out(2.0, ())
