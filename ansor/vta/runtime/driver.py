"""The interface of devices that run programs: a memory that the host writes and reads, and a core attached to it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Protocol

from ansor.errors import ArgumentError
from ansor.vta.assembler import Words
from ansor.vta.configuration import Configuration
from ansor.vta.tensors import Bytes


@dataclass(frozen=True)
class Event:
    """Something that a device did. kind: "write", "read" or "instructions" for a transfer, or "run"; bytes: bytes moved; began, ended: seconds on the
    device's clock; cycles: cycles of a run, 0 if the device does not count them."""

    kind: str
    bytes: int
    began: float
    ended: float
    cycles: int = 0


class Driver(Protocol):
    """A device with `dram_bytes` of memory. Calls take effect in order, but may return earlier; `read`, `wait` and `events` wait for the calls before them.

    The memories of the core keep their contents from one run to the next. A program that fails raises ProgramError: in `run`, or in the next call that waits.
    """

    name: str
    configuration: Configuration
    dram_bytes: int

    def write(self, address: int, data: Bytes) -> None:
        """Copy bytes from the host to memory in one transfer. The caller may change them as soon as this returns."""
        ...

    def read(self, address: int, count: int) -> Bytes:
        """Read that many bytes of memory in one transfer."""
        ...

    def run(self, words: Words) -> None:
        """Run a program [n, 2] that ends with FINISH; its instructions are one transfer."""
        ...

    def wait(self) -> None:
        """Wait until all calls before this are done."""
        ...

    def events(self) -> tuple[Event, ...]:
        """All events since the device was opened."""
        ...


def check_memory(dram_bytes: object) -> None:
    """Raises ArgumentError unless the value is the size of a memory."""
    if not isinstance(dram_bytes, Integral) or isinstance(dram_bytes, bool) or dram_bytes < 1:
        raise ArgumentError(f"asked for a device with dram_bytes={dram_bytes!r:.80}; pass how many bytes of memory it has, such as 1 << 26")


def check_range(driver: Driver, address: int, count: int) -> None:
    """Raises ArgumentError for bytes that are not in the memory of the device."""
    if address < 0 or count < 0 or address + count > driver.dram_bytes:
        raise ArgumentError(f"asked for bytes {address} to {address + count} of {driver.name}, which has {driver.dram_bytes}: pass a range inside")
