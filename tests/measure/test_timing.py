from dataclasses import replace

import pytest

from ansor.measure.timing import Stopping, Timing, TimingOptions, relative_spread, time_repeats

OPTIONS = TimingOptions(number=1, repeat=3, min_repeat_ms=10, stopping=Stopping(contender_repeats=0))


class Fake:
    """A candidate of constant speed and the clock it moves."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = 0.0
        self.calls: list[int] = []

    def run(self, number: int) -> float:
        self.calls.append(number)
        self.now += number * self.seconds
        return number * self.seconds

    def time(self, options: TimingOptions, best: float | None = None, first: float | None = None) -> Timing:
        return time_repeats(
            self.run, options, first_seconds=first or self.seconds, best_seconds=best, clock=lambda: self.now
        )


def test_repeats_last_as_long_as_asked() -> None:
    fake = Fake(0.001)
    timing = fake.time(OPTIONS)
    assert timing == Timing(timing.seconds) and timing.seconds == pytest.approx((0.001,) * 3)
    assert fake.calls[0] == 1 and all(number >= 10 for number in fake.calls[-3:])


def test_slow_ones_are_cut_at_the_earliest_moment() -> None:
    fake = Fake(0.2)
    assert fake.time(OPTIONS, best=0.01) == Timing((0.2,), cut_short=True) and not fake.calls
    fake = Fake(0.02)
    assert fake.time(OPTIONS, best=0.001) == Timing((0.02,), cut_short=True) and fake.calls == [1, 1, 1]
    assert not Fake(0.02).time(OPTIONS, best=0.01).cut_short


@pytest.mark.parametrize(("first", "expected"), [(0.2, 0), (0.001, 1)])
def test_what_comes_before_a_second_call_comes_before_no_other(first: float, expected: int) -> None:
    fake, before = Fake(first), list[int]()
    time_repeats(fake.run, OPTIONS, first_seconds=first, best_seconds=0.01, clock=lambda: fake.now, before_second=lambda: before.append(len(fake.calls)))
    assert before == [0] * expected and bool(fake.calls) == bool(expected)


def test_contenders_are_timed_again() -> None:
    options = replace(OPTIONS, stopping=Stopping(contender_ratio=1.1, contender_repeats=5))
    assert len(Fake(0.0012).time(options, best=0.001).seconds) == 3
    assert len(Fake(0.00105).time(options, best=0.001).seconds) == 8
    assert len(Fake(0.001).time(options).seconds) == 8, "the first program of a task is one"


def test_a_cold_first_call_does_not_cut() -> None:
    assert not Fake(0.001).time(OPTIONS, best=0.001, first=0.04).cut_short


def test_one_slow_call_does_not_cut() -> None:
    fake = Fake(0.001)
    slow = iter([0.05])
    timing = time_repeats(lambda number: next(slow, fake.run(number)), OPTIONS, first_seconds=0.001, best_seconds=0.001, clock=lambda: fake.now)
    assert not timing.cut_short and len(timing.seconds) == 3


def test_cold_caches_time_single_calls() -> None:
    fake = Fake(0.0001)
    fake.time(replace(OPTIONS, number=5, flush_bytes=1 << 20))
    assert fake.calls == [1, 1, 1, 1]


def test_what_takes_long_is_repeated_less() -> None:
    fake = Fake(4.0)
    assert len(fake.time(replace(OPTIONS, timeout_seconds=10.0)).seconds) == 1


def test_spread() -> None:
    assert relative_spread([1.0] * 20) == 0 and relative_spread([1.0, 2.0, 3.0]) == 1


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="number, repeat >= 1"):
        TimingOptions(repeat=0)
    with pytest.raises(ValueError, match="Stopping: cut_ratio > 1"):
        Stopping(cut_ratio=1.0)
    with pytest.raises(ValueError, match="Stopping: contender_repeats='9' is not a number"):
        Stopping(contender_repeats="9")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="stopping=3.0 is invalid; give a Stopping"):
        TimingOptions(stopping=3.0)  # type: ignore[arg-type]
