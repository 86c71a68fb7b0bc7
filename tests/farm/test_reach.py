"""What does not answer like a scheduler is told in a sentence, in time."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ansor.errors import DeviceError
from ansor.farm import reach
from ansor.farm.address import read_place


def test_what_accepts_and_says_nothing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANSOR_FARM", str(tmp_path))
    monkeypatch.setattr(reach, "FIRST_WORDS_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = read_place(f"127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(DeviceError, match="accepts a connection, but says nothing: it is no scheduler, or is stopped"):
            reach.reach(place, "client", 1.0)
    with pytest.raises(DeviceError, match="no scheduler answers there"):
        reach.reach(place, "client", 1.0)
