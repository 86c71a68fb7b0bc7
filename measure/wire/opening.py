"""Opens wires by their text: `open_wire("gdb://localhost:3333")`. This is the only place that maps texts to modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansor.errors import DeviceError
from ansor.measure.wire.wire import Wire


@dataclass(frozen=True, slots=True)
class WireKind:
    """A kind of wire. starts: how its texts begin. form: such a text, for messages. open: raises DeviceError
    or its subclass WireError. check: raises DeviceError for a text that cannot be read, and opens nothing."""

    name: str
    starts: tuple[str, ...]
    form: str
    open: Callable[[str], Wire]
    check: Callable[[str], object] = lambda text: None


def _gdb(text: str) -> Wire:
    from ansor.measure.wire.gdb import open_gdb

    return open_gdb(text)


def _bitbang(text: str) -> Wire:
    from ansor.measure.wire.bitbang import open_bitbang

    return open_bitbang(text)


def _serial(text: str) -> Wire:
    from ansor.measure.wire.serial import open_serial

    return open_serial(text)


def _process(text: str) -> Wire:
    from ansor.measure.wire.process import open_process

    return open_process(text)


def _check_gdb(text: str) -> None:
    from ansor.measure.wire.gdb import read_gdb

    read_gdb(text)


def _check_bitbang(text: str) -> None:
    from ansor.measure.wire.bitbang import read_bitbang

    read_bitbang(text)


def _check_serial(text: str) -> None:
    from ansor.measure.wire.serial import read_serial

    read_serial(text)


KINDS = (
    WireKind("gdb", ("gdb:",), "gdb://HOST:PORT", _gdb, _check_gdb),
    WireKind("bitbang", ("bitbang:",), "bitbang://HOST:PORT", _bitbang, _check_bitbang),
    WireKind("serial", ("serial:", "socket:", "loop:", "/dev/"), "serial:/dev/NAME?baud=115200", _serial, _check_serial),
    WireKind("process", ("process:",), "process:", _process),
)


def wire_kind(text: str) -> WireKind | None:
    """The kind of wire that a text names; None if it names none."""
    return next((kind for kind in KINDS if text.strip().startswith(kind.starts)), None)


def wire_forms() -> str:
    """How texts of wires are written, for messages."""
    return ", ".join(kind.form for kind in KINDS)


def open_wire(text: str) -> Wire:
    """Open the wire that a text names. Raises DeviceError for another text, WireError if no board answers."""
    return read_wire(text).open(text.strip())


def read_wire(text: str) -> WireKind:
    """The kind of the wire that a text names. Raises DeviceError for a text that cannot be read."""
    kind = wire_kind(text)
    if kind is None:
        raise DeviceError(f"asked for the wire {text!r}, which does not name one; write {wire_forms()}")
    kind.check(text.strip())
    return kind
