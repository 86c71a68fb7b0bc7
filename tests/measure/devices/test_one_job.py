"""Closing and running, from several threads."""

from __future__ import annotations

import threading

from ansor.measure.devices.one_job import JobLock


def test_a_job_that_runs_is_interrupted_and_waited_for() -> None:
    one, begun, told, steps = JobLock(), threading.Event(), threading.Event(), list[str]()

    def job() -> None:
        with one.running():
            begun.set()
            assert told.wait(60) and one.closing.is_set()
            steps.append("job ended")

    thread = threading.Thread(target=job)
    thread.start()
    assert begun.wait(60)
    with one.ended(told.set):
        steps.append("let go")
    thread.join(60)
    assert steps == ["job ended", "let go"] and not one.closing.is_set()


def test_nothing_is_interrupted_where_no_job_runs() -> None:
    one, told = JobLock(), list[int]()
    with one.ended(lambda: told.append(1)):
        assert one.closing.is_set()
    with one.running():
        assert not told and not one.closing.is_set()


def test_it_works_again_after_an_error() -> None:
    one = JobLock()
    try:
        with one.ended(lambda: None):
            raise OSError("the folder is gone")
    except OSError:
        pass
    with one.running():
        assert not one.closing.is_set()
