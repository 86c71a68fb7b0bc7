"""Addresses of farms, and texts of their devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.errors import DeviceError
from ansor.farm.address import is_loopback, read_farm, read_place
from ansor.farm.certificates import make_certificates


@pytest.mark.parametrize(("text", "url"), [
    ("127.0.0.1:9", "tcp://127.0.0.1:9"), ("localhost", "tcp://localhost:8786"), ("[::1]:9", "tcp://[::1]:9"), ("::1", "tcp://[::1]:8786"),
    ("tcp://127.0.0.1:9", "tcp://127.0.0.1:9"),
])  # fmt: skip
def test_places_of_this_machine(text: str, url: str) -> None:
    assert read_place(text).url == url


@pytest.mark.parametrize("text", ["0.0.0.0:8786", "10.0.0.7", "board:1", "[fe80::1]:5", "localhost.evil.example:1", "127.0.0.1.evil:1"])
def test_beyond_this_machine_there_are_certificates(text: str, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="without certificates: `ansor farm init`"):
        read_place(text)
    make_certificates(tmp_path / "here")
    assert read_place(text, str(tmp_path / "here")).url.startswith("tls://")


def test_certificates_that_are_there_are_used(tmp_path: Path) -> None:
    make_certificates(tmp_path / "none")
    assert read_place("127.0.0.1:9").url == "tls://127.0.0.1:9"


@pytest.mark.parametrize("text", ["127.0.0.1:x", "127.0.0.1:99999", "127.0.0.1:-1"])
def test_no_ports(text: str) -> None:
    with pytest.raises(DeviceError, match="give HOST:PORT"):
        read_place(text)


def test_devices() -> None:
    found = read_farm("farm://127.0.0.1:9?key=rk3399&slots=3&canary=0")
    assert (found.key, found.slots, found.canary, found.place.port) == ("rk3399", 3, 0, 9)
    assert (read_farm("farm://127.0.0.1?key=a").slots, read_farm("farm://127.0.0.1?key=a").canary) == (0, 1)


@pytest.mark.parametrize(("text", "said"), [
    ("farm://127.0.0.1:9", "name a key"), ("farm://127.0.0.1:9?key=", "name a key"), ("farm://127.0.0.1:9?key=a&key=b", "given twice"),
    ("farm://127.0.0.1:9?key=a&speed=3", "speed is unknown or given twice"), ("farm://127.0.0.1:9?key=a&slots=x", "slots is 'x'"),
    ("farm://127.0.0.1:9?key=a&slots=5000", "up to 4096"),
])  # fmt: skip
def test_texts_that_are_none(text: str, said: str) -> None:
    with pytest.raises(DeviceError, match=said):
        read_farm(text)


def test_what_is_of_this_machine() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.3.4.5", "::1"))) and not any(map(is_loopback, ("", "0.0.0.0", "::", "8.8.8.8", "localhost2")))
