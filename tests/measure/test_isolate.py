"""What a child process wrote is never lost."""

from __future__ import annotations

import os
import select
import time

import pytest

from ansor.measure.harness import Harness
from ansor.measure.isolate import Report, isolated

pytestmark = pytest.mark.compiler


def test_messages_of_a_child_that_ends_just_after_it_was_looked_for_arrive(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """`select` says that there is nothing, and before the child's state is asked for, it writes and ends."""
    real, waited = select.select, list[float]()

    def late(*given: object) -> object:
        if not waited:
            waited.append(0.0)
            while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                time.sleep(0.001)
            return [], [], []
        return real(*given)  # type: ignore[arg-type]

    def body(report: Report) -> None:
        report({"seconds": [1.0]})
        report({"seconds": [2.0]})

    monkeypatch.setattr(select, "select", late)
    found = isolated(harness, body, timeout=10.0)
    assert waited and found.failure is None and [*found.messages] == [{"seconds": [1.0]}, {"seconds": [2.0]}, {"done": True}]
