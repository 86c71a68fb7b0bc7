"""What is kept between processes is whole or not there, and of bounded size."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansor.support import kept_data


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANSOR_CACHE", str(tmp_path))
    monkeypatch.setattr(kept_data, "ENABLED", True)
    return tmp_path


def test_what_is_written_is_read(cache: Path) -> None:
    assert kept_data.read("things", "one") is None
    kept_data.write("things", "one", b"content", 1 << 20)
    assert kept_data.read("things", "one") == b"content"
    assert kept_data.read("things", "two") is None


def test_damage_is_nothing(cache: Path) -> None:
    kept_data.write("things", "one", b"content", 1 << 20)
    for path in (cache / "things").glob("one-*"):
        path.write_bytes(b"contenT")
    assert kept_data.read("things", "one") is None


def test_what_was_not_used_for_longest_goes(cache: Path) -> None:
    for age, name in enumerate(("one", "two")):
        kept_data.write("things", name, bytes(20000), 100000)
        for path in (cache / "things").glob(f"{name}*"):
            os.utime(path, (age, age))
    assert kept_data.read("things", "one") is not None
    kept_data.write("things", "three", bytes(20000), 60000)
    assert kept_data.read("things", "two") is None
    assert kept_data.read("things", "one") is not None and kept_data.read("things", "three") is not None
    kept_data.write("things", "large", bytes(60001), 60000)
    assert kept_data.read("things", "large") is None


def test_a_name_says_all() -> None:
    assert kept_data.name_of((1, "a")) == kept_data.name_of((1, "a")) != kept_data.name_of((1, "b"))


def test_nothing_is_kept_where_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_data, "ENABLED", False)
    kept_data.write("things", "one", b"content", 1 << 20)
    monkeypatch.setattr(kept_data, "ENABLED", True)
    assert kept_data.read("things", "one") is None
