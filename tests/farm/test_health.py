"""Health by itself: what puts a device aside, and what brings it back."""

from __future__ import annotations

import pytest

from ansor.farm.health import FEWEST, KEPT, MOST_LOST, WELL_AGAIN, Health, stands_out
from ansor.measure.device import Observation
from ansor.measure.failure import KINDS, LINK, Failure
from ansor.targets.unit import SECONDS

WELL = Observation((1.0,), SECONDS)


def after(costs: list[float | None], health: Health | None = None) -> Health:
    health = health or Health()
    for cost in costs:
        health = health.after_canary(cost)
    return health


def test_a_slow_canary_puts_it_aside_and_usual_ones_bring_it_back() -> None:
    slow = after([1.0, 1.05, 0.95, 2.0])
    assert "2.00 times as long as usual" in slow.quarantined and slow.usual == 1.0
    assert after([1.0] * (WELL_AGAIN - 1), slow).quarantined and not after([1.0] * WELL_AGAIN, slow).quarantined
    assert after([1.0, 2.0] * WELL_AGAIN, slow).quarantined  # in a row


def test_what_is_nearly_as_usual_is_usual() -> None:
    assert not after([1.0, 1.1, 1.14, 1.0]).quarantined


def test_a_canary_that_fails_puts_it_aside() -> None:
    assert after([1.0, None]).quarantined


def test_noise_puts_it_aside() -> None:
    noisy = after([1.0, 0.9, 0.75, 0.7, 0.65, 0.6])
    assert "varies by" in noisy.quarantined and len([1.0] * FEWEST) == 6


def test_only_so_many_are_kept() -> None:
    assert len(after([1.0] * (KEPT + 5)).canaries) == KEPT


@pytest.mark.parametrize("kind", KINDS)
def test_failures_of_the_link_in_a_row_put_it_aside_and_others_do_not(kind: str) -> None:
    health = Health()
    for _ in range(MOST_LOST):
        assert not health.quarantined
        health = health.after_run(Failure(kind, "why"))
    assert bool(health.quarantined) == (kind in LINK)


def test_a_run_that_succeeds_starts_the_count_anew() -> None:
    health = Health()
    for _ in range(10):
        for _ in range(MOST_LOST - 1):
            health = health.after_run(Failure("link_lost", "why"))
        health = health.after_run(WELL)
    assert not health.quarantined


def test_one_that_is_slower_than_the_others_stands_out_and_one_alone_does_not() -> None:
    assert stands_out(2.0, (1.0, 1.0)) and stands_out(2.0, (1.0,)) and not stands_out(1.1, (1.0, 1.0)) and not stands_out(0.5, (1.0, 1.0))
    assert not stands_out(2.0, ())
