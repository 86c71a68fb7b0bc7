from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ansor.errors import DeviceError
from ansor.measure.agent.key import made_key, read_key


def test_a_key_is_made_once(tmp_path: Path) -> None:
    place = tmp_path / "folder" / "key"
    assert made_key(place) and not made_key(place)
    assert place.stat().st_mode & 0o777 == 0o600 and len(read_key(place)) == 64


@pytest.mark.parametrize(("content", "mode", "said"), [
    (b"x" * 15 + b"\n\n", 0o600, "has 15 bytes; it needs 16 to 4095"),
    (b"x" * 4096, 0o600, "has 4096 bytes"),
    (b"x" * 32, 0o640, "others can read or write the key .* chmod 600"),
])  # fmt: skip
def test_keys_that_are_refused(tmp_path: Path, content: bytes, mode: int, said: str) -> None:
    (tmp_path / "key").write_bytes(content)
    (tmp_path / "key").chmod(mode)
    with pytest.raises(DeviceError, match=said):
        read_key(tmp_path / "key")


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="No such file"):
        read_key(tmp_path / "key")
    os.mkfifo(tmp_path / "key", 0o600)
    with pytest.raises(DeviceError, match="which is not a regular file"):
        read_key(tmp_path / "key")


def test_a_key_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_key(tmp_path / "key")
    found = os.stat_result((stat.S_IFREG | 0o600, 1, 1, 1, os.geteuid() + 1, 0, 65, 0, 0, 0))
    monkeypatch.setattr(os, "fstat", lambda descriptor: found)
    with pytest.raises(DeviceError, match="belongs to another user .* copy it to your own file"):
        read_key(tmp_path / "key")
