"""A wire to memory of this process. Its processor recognises the three programs of the tests. Each flaw can be switched on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

from ansor.measure.wire.wire import Abilities, Stopped, Traffic, WireError
from ansor.testing.wire_programs import RISCV, STOP, SUM, WORDS

START, SIZE = 0x80000000, 0x10000
FLAWS = ("escapes", "alignment", "tail", "counts", "beside", "adds", "trap", "deaf", "open", "range", "stuck", "reset")


@dataclass
class Board:
    """The state that survives closing a wire."""

    memory: bytearray = field(default_factory=lambda: bytearray(SIZE))
    stuck: bool = False


@dataclass
class MemoryWire:
    """`flaw`: the wire's defect; '' for none."""

    board: Board
    flaw: str = ""
    traffic: Traffic = Traffic()
    name: str = "memory:"
    abilities: Abilities = Abilities(halts=True, resets=True, chunk=512)
    closed: threading.Event = field(default_factory=threading.Event)

    def read(self, address: int, size: int) -> bytes:
        """See `Wire`."""
        at = self._at(address, size)
        self.traffic = replace(self.traffic, received=self.traffic.received + size + (self.flaw == "counts"))
        if self.flaw == "alignment" and size > 1:
            at &= ~1
        return bytes(self.board.memory[at:at + size])

    def write(self, address: int, data: bytes) -> None:
        """See `Wire`."""
        at = self._at(address, len(data))
        self.traffic = replace(self.traffic, sent=self.traffic.sent + len(data))
        kept = data.replace(b"}", b"]") if self.flaw == "escapes" else data
        kept = kept[:512] if self.flaw == "tail" else kept
        self.board.memory[at:at + len(kept)] = kept
        if self.flaw == "beside" and len(kept) % 4:
            self.board.memory[at + len(kept)] ^= 1

    def execute(self, entry: int, stop: int, seconds: float) -> Stopped:
        """See `Wire`."""
        at = self._at(entry, STOP)
        if self.board.stuck:
            return Stopped("timeout", entry)
        if self.board.memory.startswith(RISCV.loops, at):
            self.board.stuck = self.flaw == "stuck"
            if self.closed.wait(None if self.flaw == "deaf" else seconds):
                return self._ended()
            return Stopped("timeout", entry)
        if self.board.memory.startswith(RISCV.traps, at):
            return Stopped("trap", entry + 12, "" if self.flaw == "trap" else "a breakpoint of its own")
        first, second = (int.from_bytes(self.board.memory[at + word:at + word + 4], "little") for word in (WORDS, WORDS + 4))
        total = (first + second - (self.flaw == "adds")) & 0xFFFFFFFF
        self.board.memory[at + SUM:at + SUM + 4] = total.to_bytes(4, "little")
        return Stopped("stop", stop)

    def reset(self) -> None:
        """See `Wire`."""
        self._at(START, 0)
        if self.flaw == "reset":
            raise WireError("the board does not come back")

    def close(self) -> None:
        """See `Wire`."""
        if self.flaw != "open":
            self.closed.set()

    def _ended(self) -> Stopped:
        raise WireError("the wire was closed while a program ran")

    def _at(self, address: int, size: int) -> int:
        """The position of an address in the memory."""
        if self.closed.is_set():
            raise WireError(f"the wire {self.name} was closed")
        if not START <= address <= START + SIZE - size and self.flaw != "range":
            raise WireError(f"no memory at {address:#x}")
        return address - START
