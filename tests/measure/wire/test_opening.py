"""Wires by their text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ansor.errors import DeviceError
from ansor.measure.wire.opening import KINDS, open_wire, wire_kind
from ansor.measure.wire.wire import WireError


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gdb://localhost:3333", "gdb"), ("gdb:/dev/ttyACM0", "gdb"), ("bitbang://localhost:9824", "bitbang"), ("serial:/dev/ttyUSB0", "serial"),
        ("socket://localhost:4000", "serial"), ("/dev/ttyUSB0", "serial"), (" loop://", "serial"), ("process:4", "process"),
    ],
)  # fmt: skip
def test_the_beginning_of_a_text_says_which_kind_it_is(text: str, name: str) -> None:
    kind = wire_kind(text)
    assert kind is not None and kind.name == name


@pytest.mark.parametrize("text", ["", "jlink://x", "gdb", "tty", "http://localhost"])
def test_another_text_is_refused_with_what_can_be_written(text: str) -> None:
    with pytest.raises(DeviceError, match=r"which does not name one; write gdb://HOST:PORT, bitbang://HOST:PORT, serial:/dev/NAME\?baud=115200, process:$"):
        open_wire(text)


@given(some.text(max_size=20).map(lambda text: f"nothing{text}"))
def test_text_that_names_nothing_is_one_error(text: str) -> None:
    with pytest.raises(DeviceError):
        open_wire(text)


@pytest.mark.parametrize("text", ["gdb://127.0.0.1:1?timeout=nonsense", "bitbang://", "serial:?baud=x", "process:x"])
def test_mistakes_inside_a_text_are_told_by_its_kind(text: str) -> None:
    with pytest.raises(DeviceError):
        open_wire(text)


@pytest.mark.compiler
def test_a_wire_is_open() -> None:
    wire = open_wire("process:1")
    try:
        assert wire.abilities.bits in (32, 64)
    finally:
        wire.close()


def test_every_kind_has_texts_of_its_own() -> None:
    starts = [start for kind in KINDS for start in kind.starts]
    assert len(set(starts)) == len(starts) and issubclass(WireError, DeviceError)
