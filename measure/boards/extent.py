"""Finds how much memory answers from an address on. Writes and restores a few bytes at its start; beyond that it only reads."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.measure.wire.wire import Wire, WireError

REGION = 512 << 20
"""Processors map memory and devices in blocks of this size, and reading a device may change its state: the next block is never read."""

GRAIN = 1 << 10
SEEN = 16  # bytes that tell whether memory repeats


@dataclass(frozen=True, slots=True)
class Extent:
    """Bytes that answer from an address on. anew: the same memory repeats after them; open: it reaches the end of its block of addresses."""

    size: int
    anew: bool = False
    open: bool = False


def extent_of(wire: Wire, start: int) -> Extent:
    """How much memory answers from an address on, to 1 KiB. It must start with RAM. Raises WireError if the wire breaks."""
    before, pattern = wire.read(start, SEEN), bytes((29 * at + 0x5B) & 0xFF for at in range(SEEN))
    try:
        wire.write(start, pattern)
        return _found(wire, start, pattern)
    finally:
        wire.write(start, before)


def _found(wire: Wire, start: int, pattern: bytes) -> Extent:
    most, size = REGION - start % REGION, GRAIN
    while size < most:
        if not _answers(wire, start, start + size):
            return Extent(_end(wire, start, size))
        if _is_start(wire, start, start + size, pattern):
            return Extent(size, anew=True)
        size *= 2
    return Extent(most, open=True)


def _end(wire: Wire, start: int, absent: int) -> int:
    """Where it ends: between the last place that answered and the first that did not."""
    low, high = absent // 2 if absent > GRAIN else 0, absent
    while high - low > GRAIN:
        middle = (low + high) // 2 // GRAIN * GRAIN
        low, high = (middle, high) if _answers(wire, start, start + middle) else (low, middle)
    return high


def _answers(wire: Wire, start: int, at: int) -> bool:
    """Whether a place can be read. Raises WireError if the start cannot be read either."""
    try:
        wire.read(at, SEEN)
    except WireError:
        wire.read(start, SEEN)
        return False
    return True


def _is_start(wire: Wire, start: int, at: int, pattern: bytes) -> bool:
    """Whether a place aliases the start: writing there changes it here."""
    if wire.read(at, SEEN) != pattern:
        return False
    wire.write(start, bytes(SEEN))
    same = wire.read(at, SEEN) == bytes(SEEN)
    wire.write(start, pattern)
    return same
