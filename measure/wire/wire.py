"""A wire to a board without an operating system: memory, and running code. A person's own board is one class with these methods.

    read, write ── bytes at addresses
    execute     ── from one address until another is reached, or time is up
    reset       ── from the beginning, memory kept where the board keeps it

Whatever goes through a wire is counted, so that a test can say what did not. `ansor.testing.wire_contract` has the tests that every wire passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from ansor.errors import DeviceError

Reason = Literal["stop", "trap", "timeout"]


class WireError(DeviceError):
    """The wire broke, or the answers on it make no sense. Reconnecting may help."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a wire can do.

    halts: it can stop a program that does not end, and say where it was. resets: it can start the board anew.
    chunk: bytes that one read or write moves at best; more is cut into pieces. bits: of an address and a register, 0 where the wire does not know.
    """

    halts: bool
    resets: bool
    chunk: int
    bits: int = 0


@dataclass(frozen=True, slots=True)
class Traffic:
    """What went through a wire since it was opened. sent, received: bytes of memory written and read. overhead: all other bytes, both ways.
    repeated: packets that went twice. damaged: packets that came with a wrong sum."""

    sent: int = 0
    received: int = 0
    overhead: int = 0
    repeated: int = 0
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class Stopped:
    """How a run ended. stop: it reached the address; trap: the processor stopped for another reason; timeout: it was halted when its time was up.
    pc: where it is, None where the wire cannot tell. cause: what the wire knows of a trap, in words."""

    reason: Reason
    pc: int | None = None
    cause: str = ""


class Wire(Protocol):
    """One board behind a wire. One thread at a time; `close` may come from another and ends what waits.

    All methods raise WireError when the wire breaks. Afterwards `reset` (or opening it anew) leads back to a board that works, if anything does.
    """

    @property
    def name(self) -> str:
        """The text that opens it again."""

    @property
    def abilities(self) -> Abilities:
        """What it can do; known once it is open."""

    @property
    def traffic(self) -> Traffic:
        """What went through it so far."""

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes of memory, from any address."""

    def write(self, address: int, data: bytes) -> None:
        """Write memory, at any address; it is there when this returns."""

    def execute(self, entry: int, stop: int, seconds: float) -> Stopped:
        """Run from `entry` until `stop` is reached, which is not run, for `seconds` at most. The code at `entry` makes its own stack.

        16 bytes at `stop` belong to the wire: it may put a breakpoint, or a jump, there."""

    def reset(self) -> None:
        """Restart the board and halt it. The contents of memory afterwards depend on the board. Raises WireError where `abilities.resets` is False."""

    def close(self) -> None:
        """Let go of the board. Nothing else may be called afterwards."""


@runtime_checkable
class Summing(Protocol):
    """A wire whose board sums up its memory, which is less to send than the memory."""

    def crc(self, address: int, size: int) -> int:
        """CRC-32 of so many bytes. Raises WireError."""
