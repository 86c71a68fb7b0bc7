"""The monitor as a local process: a board for experiments. `open_process("process:")`, or "process:64" for 64 MiB of memory."""

from __future__ import annotations

from functools import partial

from ansor.errors import DeviceError
from ansor.measure.wire.monitor_build import built_process
from ansor.measure.wire.port import process_port
from ansor.measure.wire.serial import SerialWire

PREFIX = "process:"
MOST_MEGABYTES = 4096


def open_process(text: str = PREFIX) -> SerialWire:
    """A wire to a process that starts and ends with it. Its programs are code for this machine, linked for an address in `facts.free`.

    Raises DeviceError for another text, ToolchainError if the monitor cannot be built, WireError if it does not start.
    """
    size = text.strip().removeprefix(PREFIX) or "1"
    if not text.strip().startswith(PREFIX) or not (size.isascii() and size.isdigit() and 0 < int(size[:9]) <= MOST_MEGABYTES):
        raise DeviceError(f"{text!r} does not name a process to measure on; write {PREFIX}, or {PREFIX}64 for 64 MiB of memory")
    program = str(built_process())

    started = partial(process_port, (program, size), text)
    return SerialWire(started(), text, started, bytes_per_second=1e6)
