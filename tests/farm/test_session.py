"""A client's side of a farm: what ends while it waits."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ansor.farm.session import Session


@pytest.mark.parametrize(("closing", "status"), [(True, "running"), (False, "closed")])
def test_nobody_waits_for_a_loop_that_has_ended(closing: bool, status: str) -> None:
    """What is given to it then never runs."""
    ended = threading.Event()
    if closing:
        ended.set()
    session = SimpleNamespace(_closing=ended, _client=SimpleNamespace(status=status, loop=SimpleNamespace(add_callback=lambda call: None)))
    with pytest.raises(OSError, match="the connection was closed"):
        Session._fetched(cast(Session, session), cast(Any, None))
