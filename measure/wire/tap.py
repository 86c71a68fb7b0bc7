"""The JTAG port (TAP) of a RISC-V debug transport module, debug specification 0.13: batches of reads and writes of debug module registers, sent at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ansor.measure.wire import jtag_characters as jtag
from ansor.measure.wire.bitbang_line import BitbangLine
from ansor.measure.wire.jtag_characters import IDLE, ModuleScans
from ansor.measure.wire.wire import WireError

IDCODE, DTMCS, DMI = 0x01, 0x10, 0x11
INSTRUCTION_BITS = 5
DMI_RESET = 1 << 16
FAILED, BUSY = 2, 3
"""Outcomes of an operation, in the two lowest bits of a scan."""

ALL = (0, jtag.OPERATION_BITS + jtag.WORD_BITS)
TRIES = 12
T = TypeVar("T")
MOST_IDLE = 4096


class ModuleBusy(Exception):
    """An operation came before the previous one was done. Later ones were ignored."""


class Batch:
    """Scans sent together. idle: clocks in Run-Test/Idle after each scan; wait: after one that starts a command."""

    def __init__(self, scans: ModuleScans, idle: int, wait: int) -> None:
        self.scans = scans
        self._idle = IDLE * idle
        self._wait = IDLE * max(wait, idle)
        self._parts: list[bytes] = []
        self._answers = 0

    def write(self, register: int, word: int, starts: bool = False) -> None:
        """Write a register. starts: it starts a command, which takes time."""
        self._parts += (self.scans.one(jtag.WRITE, register, word), self._wait if starts else self._idle)

    def read(self, register: int) -> int:
        """Read a register; returns where its answer will be among the bits."""
        at = self._answers
        self._parts += (self.scans.one(jtag.READ, register), self._idle, self.scans.one(jtag.NOTHING, answer=ALL), self._idle)
        self._answers += ALL[1]
        return at

    def write_rows(self, words: NDArray[np.uint32], registers: tuple[int, ...]) -> None:
        """Write rows of words to these registers; each row starts a command."""
        if self._idle:
            for row in words.tolist():
                for register, word in zip(registers, row, strict=True):
                    self.write(register, word, register == registers[-1])
        else:
            self._parts.append(self.scans.writes(words, registers, self._wait))

    def read_rows(self, rows: int, registers: tuple[int, ...]) -> int:
        """Read these registers in rows, each of which starts a command; returns where the answers will be: 32 bits each, after 32 meaningless ones."""
        at = self._answers
        if self._idle:
            word = (jtag.OPERATION_BITS, ALL[1])
            one = [self.scans.one(jtag.READ, register, answer=word) for register in registers]
            self._parts.append((self._idle.join(one) + self._wait) * rows)
        else:
            self._parts.append(self.scans.reads(rows, registers, self._wait))
        self._parts.append(self.scans.one(jtag.NOTHING, answer=(jtag.OPERATION_BITS, ALL[1])) + self._idle)
        self._answers += (rows * len(registers) + 1) * jtag.WORD_BITS
        return at

    def characters(self) -> bytes:
        """The whole batch, and a last scan that reads the outcome."""
        return b"".join((*self._parts, self.scans.one(jtag.NOTHING, answer=ALL), IDLE))


@dataclass(frozen=True, slots=True)
class Answers:
    """The results of a batch."""

    bits: NDArray[np.uint8]

    def word(self, at: int) -> int:
        """The word of a `Batch.read`."""
        return jtag.number(self.bits[at + jtag.OPERATION_BITS : at + ALL[1]])

    def rows(self, at: int, rows: int, columns: int) -> NDArray[np.uint32]:
        """The words of a `Batch.read_rows`. shape: (rows, columns)."""
        first = at + jtag.WORD_BITS
        return jtag.words_of(self.bits[first : first + rows * columns * jtag.WORD_BITS]).reshape(rows, columns)


class Tap:
    """A port behind a line. idcode, version (1 is 0.13), address_bits: what it reports about itself. repeated: batches sent again."""

    def __init__(self, line: BitbangLine) -> None:
        self.line = line
        self.repeated = 0
        self._idle, self._wait = 0, 1
        start = jtag.TO_RESET + IDLE + jtag.instruction(IDCODE, INSTRUCTION_BITS) + jtag.scan(0, 32, answer=(0, 32))
        control = jtag.instruction(DTMCS, INSTRUCTION_BITS) + jtag.scan(0, 32, answer=(0, 32))
        bits = line.exchange(start + control + IDLE)
        self.idcode, said = jtag.number(bits[:32]), jtag.number(bits[32:])
        self.version, self.address_bits = said & 15, said >> 4 & 63
        self._check(said)
        hint = said >> 12 & 7
        self._idle, self._wait = hint, max(hint, 1)
        self._scans = ModuleScans(self.address_bits)
        self._clear()

    def read(self, register: int) -> int:
        """Read a register of the debug module."""
        return self.run(lambda batch: batch.read(register))[0].word(0)

    def write(self, register: int, word: int) -> None:
        """Write a register of the debug module, perhaps twice if the module was busy."""
        self.run(lambda batch: batch.write(register, word))

    def run(self, build: Callable[[Batch], T]) -> tuple[Answers, T]:
        """Send a batch; returns the answers and `build`'s result.

        If the debug module was busy, the batch is rebuilt and sent again, slower: it must be repeatable."""
        for _ in range(TRIES):
            try:
                return self.once(build)
            except ModuleBusy:
                self.repeated += 1
                self._idle = self._slower(self._idle)
        raise WireError(f"the debug module at {self.line.name} stays busy, even with {self._idle} idle clocks after each scan; reset it")

    def once(self, build: Callable[[Batch], T]) -> tuple[Answers, T]:
        """Send a batch once. Raises ModuleBusy if part of it was ignored."""
        batch = Batch(self._scans, self._idle, self._wait)
        built = build(batch)
        bits = self.line.exchange(batch.characters())
        outcome = jtag.number(bits[-ALL[1] :][: jtag.OPERATION_BITS])
        if outcome == 0:
            return Answers(bits), built
        self._clear()
        if outcome == BUSY:
            raise ModuleBusy
        raise WireError(f"the debug module at {self.line.name} refused an operation (outcome {outcome}); does it need to be unlocked, or is it switched off?")

    def write_once(self, register: int, word: int) -> None:
        """Write what must not be written twice."""
        self.run(lambda batch: None)
        scans = (self._scans.one(jtag.WRITE, register, word, ALL), IDLE * max(self._wait, self._idle))
        if jtag.number(self.line.exchange(b"".join(scans))[: jtag.OPERATION_BITS]):
            raise WireError(f"the debug module at {self.line.name} was busy without a request; reset it")

    def wait_longer(self) -> None:
        """Wait longer for commands from now on."""
        self.repeated += 1
        self._wait = self._slower(self._wait)

    def pass_time(self, clocks: int) -> None:
        """Stay in Run-Test/Idle for these clocks: a simulator may run only while it is clocked."""
        self.line.exchange(IDLE * clocks + b"R")

    def _slower(self, clocks: int) -> int:
        if clocks >= MOST_IDLE:
            raise WireError(f"the debug module at {self.line.name} stays busy, even with {clocks} idle clocks; reset it")
        return max(1, 2 * clocks)

    def _clear(self) -> None:
        """Clear errors, and select the debug module interface."""
        clear = jtag.instruction(DTMCS, INSTRUCTION_BITS) + jtag.scan(DMI_RESET, 32) + IDLE
        self.line.exchange(clear + jtag.instruction(DMI, INSTRUCTION_BITS) + IDLE * max(self._wait, self._idle))

    def _check(self, said: int) -> None:
        if self.idcode in (0, 0xFFFFFFFF) or not self.idcode & 1:
            raise WireError(f"the JTAG port at {self.line.name} has IDCODE 0x{self.idcode:08x}, which no chip has; is something connected to it, and powered?")
        if self.version != 1 or not self.address_bits:
            found = f"DTMCS 0x{said:08x}, version {self.version}"
            raise WireError(f"the JTAG port at {self.line.name} (IDCODE 0x{self.idcode:08x}) is not a RISC-V debug transport of specification 0.13 ({found})")
