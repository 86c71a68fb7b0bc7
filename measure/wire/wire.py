"""The protocol of wires to boards without an operating system: accessing memory and running code. A new kind of board needs one class with these methods.

    read, write ── bytes at addresses
    execute     ── from one address to another, or until time is up
    reset       ── restart; memory is kept if the board keeps it

All traffic is counted, so that a test can tell what was not sent. Every wire passes the tests in `ansor.testing.wire_contract`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from ansor.errors import DeviceError

Reason = Literal["stop", "trap", "timeout"]


class WireError(DeviceError):
    """The wire broke, or the answers on it make no sense. Reconnecting may help."""


class FlashError(WireError):
    """Flash memory was not erased or written, or does not keep what was written. Its contents are unknown."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """The abilities of a wire.

    halts: it can stop a program that does not end, and say where it was. resets: it can restart the board.
    chunk: the most bytes per read or write; more is split. bits: of an address and a register, 0 if unknown. processor: its architecture, as the server at the
    other end names it; '' if unknown.
    """

    halts: bool
    resets: bool
    chunk: int
    bits: int = 0
    processor: str = ""


@dataclass(frozen=True, slots=True)
class Traffic:
    """A wire's traffic since it was opened. sent, received: bytes of memory written and read. overhead: all other bytes, both ways.
    repeated: packets sent again. damaged: packets that came with a wrong checksum."""

    sent: int = 0
    received: int = 0
    overhead: int = 0
    repeated: int = 0
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class Stopped:
    """How a run ended. stop: it reached the address; trap: the processor stopped for another reason; timeout: it was halted when its time was up.
    pc: where it is, None if unknown. cause: what is known about a trap, in words."""

    reason: Reason
    pc: int | None = None
    cause: str = ""


class Wire(Protocol):
    """One board behind a wire. One thread at a time; `close` may be called from another and ends waits.

    All methods raise WireError when the wire breaks. Afterwards `reset` (or reopening it) recovers the board, if anything does.
    """

    @property
    def name(self) -> str:
        """The text that opens it again."""

    @property
    def abilities(self) -> Abilities:
        """Its abilities; known once it is open."""

    @property
    def traffic(self) -> Traffic:
        """Its traffic so far."""

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes of memory, from any address."""

    def write(self, address: int, data: bytes) -> None:
        """Write memory, at any address; it is there when this returns."""

    def execute(self, entry: int, stop: int, seconds: float) -> Stopped:
        """Run from `entry` until `stop` is reached, which is not run, for `seconds` at most. The code at `entry` makes its own stack.

        16 bytes at `stop` belong to the wire: it may put a breakpoint, or a jump, there."""

    def reset(self) -> None:
        """Restart the board and halt it. The contents of memory afterwards depend on the board. Raises WireError if `abilities.resets` is False."""

    def close(self) -> None:
        """Release the board. Nothing else may be called afterwards."""


@runtime_checkable
class Summing(Protocol):
    """A wire whose board can compute checksums of its memory, so that less must be sent."""

    def crc(self, address: int, size: int) -> int:
        """CRC-32 of `size` bytes. Raises WireError."""


@dataclass(frozen=True, slots=True)
class FlashRegion:
    """Flash memory that is erased in blocks of `block` bytes. start: address of the first block; size: bytes of all blocks."""

    start: int
    size: int
    block: int

    @property
    def end(self) -> int:
        """The address after it."""
        return self.start + self.size


@runtime_checkable
class Flashing(Protocol):
    """A wire that can write flash memory."""

    def flash(self) -> tuple[FlashRegion, ...]:
        """The board's flash, by address, without overlaps; empty if none is known. Raises WireError."""

    def program(self, parts: Sequence[tuple[int, bytes]]) -> None:
        """Erase whole blocks and write them. parts: address and new contents, by address, without overlaps.

        The wire may use the board's other memory for this, and reset the board: the contents of RAM are unknown afterwards. Nothing is read back.
        Raises FlashError if it is refused. After any WireError the contents of these blocks are unknown, and only `reset` reconnects."""
