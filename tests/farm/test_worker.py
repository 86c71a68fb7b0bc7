"""A worker by itself: what it says while it cannot join."""

from __future__ import annotations

from ansor.farm.worker import AGAIN, _once


def test_why_it_cannot_join_is_told_once_until_it_has_joined() -> None:
    said: list[str] = []
    tell = _once(said.append)
    for text in (f"refused{AGAIN}", f"silent{AGAIN}", f"refused{AGAIN}", "local serves x", f"refused{AGAIN}", f"refused{AGAIN}", "local serves x"):
        tell(text)
    assert said == [f"refused{AGAIN}", f"silent{AGAIN}", "local serves x", f"refused{AGAIN}", "local serves x"]
