"""Opens wires by their text: `open_wire("gdb://localhost:3333")`. This is the only place that maps texts to modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ansor.errors import DeviceError
from ansor.measure.wire.wire import Wire


@dataclass(frozen=True, slots=True)
class WireKind:
    """A kind of wire. starts: how its texts begin. form: such a text, for messages. open: raises DeviceError, or WireError, which is one."""

    name: str
    starts: tuple[str, ...]
    form: str
    open: Callable[[str], Wire]


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


KINDS = (
    WireKind("gdb", ("gdb:",), "gdb://HOST:PORT", _gdb),
    WireKind("bitbang", ("bitbang:",), "bitbang://HOST:PORT", _bitbang),
    WireKind("serial", ("serial:", "socket:", "loop:", "/dev/"), "serial:/dev/NAME?baud=115200", _serial),
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
    kind = wire_kind(text)
    if kind is None:
        raise DeviceError(f"asked for the wire {text!r}, which does not name one; write {wire_forms()}")
    return kind.open(text.strip())
