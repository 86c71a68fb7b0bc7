"""NOR flash behind a GDB server, for tests: blocks are erased whole, a byte is written once after that, and writes are done at `vFlashDone`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ansor.measure.wire.wire import FlashRegion

ERASED = 0xFF


def memory_map(regions: Sequence[FlashRegion], ram: str = "") -> bytes:
    """The XML of a memory map."""
    rows = [
        f'<memory type="flash" start="{one.start:#x}" length="{one.size:#x}"><property name="blocksize">{one.block:#x}</property></memory>' for one in regions
    ]
    return f'<?xml version="1.0"?><!DOCTYPE memory-map><memory-map>{ram}{"".join(rows)}</memory-map>'.encode()


@dataclass
class NorFlash:
    """Answers the packets. put: writes memory. fails: answers instead of doing something, by the beginning of a packet; loses: a bit of what is written
    at this address does not change.

    erased: how often each block was, by its address; programmed: how often a group ended. broken: rules that a client did not keep."""

    regions: tuple[FlashRegion, ...]
    put: Callable[[int, bytes], None]
    fails: dict[bytes, bytes] = field(default_factory=dict)
    loses: int | None = None
    erased: Counter[int] = field(default_factory=Counter)
    programmed: int = 0
    broken: list[str] = field(default_factory=list)
    _blank: set[int] = field(default_factory=set)
    _group: list[tuple[int, bytes]] = field(default_factory=list)

    def has(self, address: int, size: int) -> bool:
        """Whether any of these bytes are in flash."""
        return any(address < one.end and one.start < address + size for one in self.regions)

    def forget(self) -> None:
        """A client has gone in the middle of a group."""
        self._group.clear()

    def answer(self, packet: bytes) -> bytes:
        """The answer to a packet that begins with `vFlash`."""
        for begins, said in self.fails.items():
            if packet.startswith(begins):
                return said
        kind, _, rest = packet.partition(b":")
        if kind == b"vFlashErase":
            address, size = (int(one, 16) for one in rest.split(b","))
            return self._erase(address, size)
        if kind == b"vFlashWrite":
            place, _, content = rest.partition(b":")
            return self._hold(int(place, 16), content)
        return self._done() if kind == b"vFlashDone" else b""

    def _erase(self, address: int, size: int) -> bytes:
        region = next((one for one in self.regions if one.start <= address and address + size <= one.end), None)
        if region is None or not size or (address - region.start) % region.block or size % region.block:
            self.broken.append(f"erased {size} bytes at {address:#x}")
            return b"E01"
        for start in range(address, address + size, region.block):
            self.erased[start] += 1
            self._blank |= set(range(start, start + region.block))
            self.put(start, bytes((ERASED,)) * region.block)
        return b"OK"

    def _hold(self, address: int, content: bytes) -> bytes:
        if not all(self.has(address + at, 1) for at in range(len(content))):
            self.broken.append(f"wrote {len(content)} bytes at {address:#x}")
            return b"E.memtype"
        if self._group and address < self._group[-1][0] + len(self._group[-1][1]):
            self.broken.append(f"wrote {address:#x} after {self._group[-1][0]:#x}")
        self._group.append((address, content))
        return b"OK"

    def _done(self) -> bytes:
        self.programmed += 1
        for address, content in self._group:
            places = range(address, address + len(content))
            if not self._blank.issuperset(places):
                self.broken.append(f"wrote {address:#x}, which was not erased")
                return b"E01"
            self._blank -= set(places)
            made = bytearray(content)
            if self.loses is not None and self.loses in places:
                made[self.loses - address] ^= 1
            self.put(address, bytes(made))
        self._group.clear()
        return b"OK"
