"""Which workers are there: asked of the scheduler now and then, whoever wants to know."""

from __future__ import annotations

from typing import Any

import pytest

from ansor.farm import workers
from ansor.farm.workers import Workers


class Asked:
    """A client that counts what it is asked. there: workers and their keys."""

    def __init__(self, there: dict[str, str]) -> None:
        self.there, self.times = there, 0

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        self.times += 1
        return {"workers": {address: {"resources": {key: 1}} for address, key in self.there.items()}}


def test_the_scheduler_is_asked_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Asked({"a": "board", "b": "board", "c": "other"})
    found = Workers(client, "board")
    assert [found.there() for _ in range(100)] == [["a", "b"]] * 100 and client.times == 1
    client.there = {"b": "board"}
    monkeypatch.setattr(workers, "LOOK_SECONDS", -1.0)
    assert found.there() == ["b"] and client.times == 2


def test_those_left_out_are_not_there_and_are_forgotten_when_they_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LOOK_SECONDS", -1.0)
    client = Asked({"a": "board", "b": "board"})
    found = Workers(client, "board")
    assert found.all_are_used and found.there() == ["a", "b"]
    found.leave_out("a")
    assert not found.all_are_used and found.there() == ["b"]
    for number in range(100):
        client.there = {"b": "board", f"new{number}": "board"}
        found.there()
        found.leave_out(f"new{number}")
    assert found._left_out == {"new99"} and found.there() == ["b"] and not found.all_are_used
    client.there = {"b": "board"}
    assert found.there() == ["b"] and found.all_are_used


def test_keys_are_told() -> None:
    assert Workers(Asked({"a": "x", "b": "x", "c": "y"}), "z").keys_text() == "there are devices with the keys x, y"
    suspended = "those with the keys y are suspended, and `ansor farm status` says why"
    assert Workers(Asked({"a": "x", "b": "suspended:y", "c": "suspended:x"}), "z").keys_text() == f"there are devices with the keys x; {suspended}"
    assert Workers(Asked({"b": "suspended:y"}), "y").keys_text() == suspended
    assert Workers(Asked({}), "z").keys_text() == "there are no devices: start some with `ansor farm worker`"
