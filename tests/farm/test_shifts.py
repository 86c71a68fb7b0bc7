"""What jobs wait for: the end of their device's shift, or somebody who asks for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ansor.farm.shifts import MOST_DEVICES, Shifts

LONG = 60.0


def test_a_result_waits_until_its_shift_has_ended() -> None:
    shifts = Shifts()
    with ThreadPoolExecutor(1) as pool, shifts.job(), shifts.job():
        waiting = pool.submit(shifts.wait, "a", 3, LONG)
        shifts.hear("b", {3: False})
        shifts.hear("a", {2: False})
        with pytest.raises(TimeoutError):
            waiting.result(0.1)
        shifts.hear("a", {2: False, 3: True})
        assert waiting.result(LONG) is True
        assert shifts.wait("a", 2, LONG) is False


def test_one_asks_where_all_wait() -> None:
    shifts = Shifts()
    with ThreadPoolExecutor(2) as pool:
        with shifts.job(), shifts.job():
            first = pool.submit(shifts.wait, "a", 0, LONG)
            with pytest.raises(TimeoutError):
                first.result(0.1)
            assert shifts.on_their_way == 2
        with shifts.job():
            assert first.result(LONG) is None


def test_only_the_devices_last_heard_of_are_kept() -> None:
    shifts = Shifts()
    for number in range(MOST_DEVICES + 5):
        shifts.hear(str(number), {0: True})
        with shifts.asking(str(number)):
            pass
    assert len(shifts._judged) == MOST_DEVICES and not shifts._asking
    assert shifts.known("4", 0) is None and shifts.known("5", 0) is True


def test_nobody_waits_for_ever() -> None:
    shifts = Shifts()
    with shifts.job(), shifts.job():
        assert shifts.wait("a", 0, 0.01) is None
    with ThreadPoolExecutor(1) as pool, shifts.job(), shifts.job():
        waiting = pool.submit(shifts.wait, "a", 0, LONG)
        shifts.close()
        assert waiting.result(LONG) is None


def test_older_answers_do_not_replace_newer_ones() -> None:
    shifts = Shifts()
    for judged in ({5: True}, {5: True, 6: True}, {5: True}):
        shifts.hear("a", judged)
    with shifts.job(), shifts.job():
        assert shifts.wait("a", 6, 0.0) is True


def test_each_device_is_asked_by_one_and_all_devices_at_once() -> None:
    shifts = Shifts()
    with ThreadPoolExecutor(3) as pool, shifts.job(), shifts.job(), shifts.job():
        assert shifts.wait("a", 0, 0.01) is None
        with shifts.asking("a"):
            other = pool.submit(shifts.wait, "a", 0, LONG)
            assert shifts.wait("b", 0, LONG) is None
            with shifts.asking("b"):
                with pytest.raises(TimeoutError):
                    other.result(0.1)
                shifts.hear("a", {0: True})
                assert other.result(LONG) is True
