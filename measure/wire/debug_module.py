"""The RISC-V debug module, specification 0.13: halt, resume, registers, and running a program up to a point. Memory is in `program_buffer`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ansor.measure.wire.tap import Answers, Batch, Tap
from ansor.measure.wire.wire import WireError

T = TypeVar("T")
DATA0, DMCONTROL, DMSTATUS, HARTINFO, ABSTRACTCS, COMMAND, ABSTRACTAUTO, PROGBUF0 = 0x04, 0x10, 0x11, 0x12, 0x16, 0x17, 0x18, 0x20
ACTIVE, NDMRESET, ACKHAVERESET, RESUMEREQ, HALTREQ = 1, 1 << 1, 1 << 28, 1 << 30, 1 << 31
ALLHALTED, ALLNONEXISTENT, ALLRESUMEACK, ALLHAVERESET = 1 << 9, 1 << 15, 1 << 17, 1 << 19
CMDERR, COMMAND_BUSY = 7 << 8, 1 << 12
TRANSFER, WRITES, POSTEXEC = 1 << 17, 1 << 16, 1 << 18
DCSR, DPC = 0x7B0, 0x7B1
GPR, S0, S1 = 0x1000, 0x1008, 0x1009
EBREAK, FENCE_I = 0x00100073, 0x0000100F

BUSY, NOT_SUPPORTED, EXCEPTION, NOT_HALTED = 1, 2, 3, 4
WORDS = {
    BUSY: "the previous command was not finished",
    NOT_SUPPORTED: "the debug module does not support this command",
    EXCEPTION: "the processor took an exception",
    NOT_HALTED: "the processor was not halted",
    5: "the bus refused",
    7: "the debug module gives an unknown reason",
}
HALT_CAUSES = {1: "ebreak", 2: "a hardware breakpoint", 3: "the debugger asked", 4: "a single step", 5: "reset", 6: "its halt group"}
ANSWER_SECONDS = 2.0
"""How long a processor may take to halt, resume, reset or execute one command."""


class CommandError(WireError):
    """An abstract command failed; `code` is cmderr."""

    def __init__(self, place: str, code: int) -> None:
        super().__init__(f"a command of the debug module at {place} failed: {WORDS.get(code, 'no known reason')} (cmderr {code})")
        self.code = code


@dataclass(frozen=True, slots=True)
class ModuleParts:
    """The parts of a debug module. data, program: words of data and of program buffer; data_address: where programs find the data, None if they cannot;
    automatic: a word of data may start a command; ends_itself: an ebreak follows the program buffer."""

    data: int
    program: int
    data_address: int | None
    automatic: bool
    ends_itself: bool


class DebugModule:
    """One processor (hart 0) behind a port. bits: of its registers. Every failure raises WireError, after clearing the failed command."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self._saved: dict[int, int] = {}
        self.bits = 0
        self.parts = self._activate()

    def run(self, build: Callable[[Batch], T]) -> tuple[Answers, T]:
        """Send a batch until all its commands succeed, each time slower, if they take longer than expected. Raises CommandError."""
        while True:
            answers, built, status = self._try(build)
            code = (status & CMDERR) >> 8
            if not code:
                return answers, built
            self._tap.write(ABSTRACTAUTO, 0)
            self._tap.write(ABSTRACTCS, CMDERR)
            if code != BUSY:
                raise CommandError(self._tap.line.name, code)
            self._tap.wait_longer()

    def halt(self) -> None:
        """Stop the processor, wherever it is."""
        self._tap.write(DMCONTROL, HALTREQ | ACTIVE)
        status = self._wait_for(ALLHALTED, "halt")
        self._tap.write(DMCONTROL, ACTIVE)
        if status & ALLHAVERESET:
            self._tap.write(DMCONTROL, ACKHAVERESET | ACTIVE)
        if not self.bits:
            self.bits = self._width()

    def resume(self) -> None:
        """Let it continue from dpc, with its own registers restored."""
        for register in list(self._saved):
            self._write_register(register, self._saved[register])
        self._saved.clear()
        self._tap.write_once(DMCONTROL, RESUMEREQ | ACTIVE)
        self._wait_for(ALLRESUMEACK, "resume")
        self._tap.write(DMCONTROL, ACTIVE)

    def halted(self) -> bool:
        """Whether the processor is halted."""
        return bool(self._tap.read(DMSTATUS) & ALLHALTED)

    def reset(self) -> None:
        """Reset everything but the debug module, and halt. Saved registers are dropped."""
        self._saved.clear()
        self._tap.write(DMCONTROL, HALTREQ | NDMRESET | ACTIVE)
        self._tap.pass_time(64)
        self._tap.write(DMCONTROL, HALTREQ | ACTIVE)
        self._wait_for(ALLHALTED, "halt after a reset")
        self._tap.write(DMCONTROL, ACKHAVERESET | HALTREQ | ACTIVE)
        self._tap.write(DMCONTROL, ACTIVE)

    def read_register(self, register: int) -> int:
        """Read a register of the halted processor: the number of a CSR, or GPR + n."""
        if register in self._saved:
            return self._saved[register]
        try:
            return self._read_register(register)
        except CommandError as error:
            if error.code != NOT_SUPPORTED or register >= GPR:
                raise
        self.borrow(S0)
        self.run(lambda batch: self._execute(batch, 0x00002073 | register << 20 | 8 << 7))  # csrrs s0, register, zero
        return self._read_register(S0)

    def write_register(self, register: int, value: int) -> None:
        """Write a register of the halted processor."""
        if register in self._saved:
            self._saved[register] = value
            return
        try:
            self._write_register(register, value)
        except CommandError as error:
            if error.code != NOT_SUPPORTED or register >= GPR:
                raise
            self.borrow(S0)
            self._write_register(S0, value)
            self.run(lambda batch: self._execute(batch, 0x00001073 | register << 20 | 8 << 15))  # csrrw zero, register, s0

    def held(self, register: int) -> int:
        """What a register holds now, even if the debugger has borrowed it."""
        return self._read_register(register)

    def borrow(self, *registers: int) -> None:
        """Save these registers for the debugger's use; `resume` restores them."""
        for register in registers:
            if register not in self._saved:
                self._saved[register] = self._read_register(register)

    def put(self, batch: Batch, register: int, value: int) -> None:
        """In a batch: write a register."""
        if self.bits == 64:
            batch.write(DATA0 + 1, value >> 32)
        batch.write(DATA0, value)
        batch.write(COMMAND, self.access(register) | TRANSFER | WRITES, starts=True)

    def program(self, batch: Batch, instructions: tuple[int, ...]) -> None:
        """In a batch: fill the program buffer. Raises WireError if the program is too long."""
        if len(instructions) < self.parts.program or not self.parts.ends_itself:
            instructions = (*instructions, EBREAK)
        if len(instructions) > self.parts.program:
            found = f"{self.parts.program} words{' and an ebreak' if self.parts.ends_itself else ''}"
            raise WireError(f"the debug module at {self._tap.line.name} has a program buffer of {found}; this wire needs {len(instructions)}")
        for index, word in enumerate(instructions):
            batch.write(PROGBUF0 + index, word)

    def access(self, register: int, bits: int = 0) -> int:
        """The command for a register, without TRANSFER, WRITES and POSTEXEC."""
        return (3 if (bits or self.bits) == 64 else 2) << 20 | register

    def fence(self) -> None:
        """Make written instructions visible to the processor."""
        self.run(lambda batch: self._execute(batch, FENCE_I))

    def _execute(self, batch: Batch, instruction: int) -> None:
        self.program(batch, (instruction,))
        batch.write(COMMAND, self.access(S0) | POSTEXEC, starts=True)

    def _read_register(self, register: int) -> int:
        words = self._transfer(register, self.bits)
        return words[0] | words[1] << 32 if self.bits == 64 else words[0]

    def _write_register(self, register: int, value: int) -> None:
        self.run(lambda batch: self.put(batch, register, value))

    def _transfer(self, register: int, bits: int) -> list[int]:
        def build(batch: Batch) -> list[int]:
            batch.write(COMMAND, self.access(register, bits) | TRANSFER, starts=True)
            return [batch.read(DATA0 + index) for index in range(bits // 32)]

        answers, places = self.run(build)
        return [answers.word(place) for place in places]

    def _width(self) -> int:
        try:
            self._transfer(S0, 64)
        except CommandError as error:
            if error.code not in (NOT_SUPPORTED, EXCEPTION):
                raise
            return 32
        return 64

    def _activate(self) -> ModuleParts:
        self._tap.write(DMCONTROL, 0)
        self._tap.write(DMCONTROL, ACTIVE)
        control, status, commands, hart = (self._tap.read(register) for register in (DMCONTROL, DMSTATUS, ABSTRACTCS, HARTINFO))
        self._check(control, status)
        self._tap.write(ABSTRACTAUTO, 1)
        automatic = self._tap.read(ABSTRACTAUTO)
        self._tap.write(ABSTRACTAUTO, 0)
        address = hart & 0xFFF if hart >> 16 & 1 and hart & 0x800 == 0 else None
        return ModuleParts(commands & 15, commands >> 24 & 31, address, bool(automatic & 1), bool(status >> 22 & 1))

    def _check(self, control: int, status: int) -> None:
        place = f"the debug module at {self._tap.line.name}"
        if not control & ACTIVE:
            raise WireError(f"{place} does not become active (dmcontrol 0x{control:08x}); is the chip held in reset, or without a clock?")
        if status & 15 not in (2, 3):
            raise WireError(f"{place} is of version {status & 15} (dmstatus 0x{status:08x}); this wire speaks 2 (specification 0.13) and 3 (1.0)")
        if not status >> 7 & 1:
            raise WireError(f"{place} asks for authentication (dmstatus 0x{status:08x}), which this wire cannot give")
        if status & ALLNONEXISTENT:
            raise WireError(f"{place} has no processor 0 (dmstatus 0x{status:08x})")

    def _try(self, build: Callable[[Batch], T]) -> tuple[Answers, T, int]:
        answers, (built, place) = self._tap.run(lambda batch: (build(batch), batch.read(ABSTRACTCS)))
        status, deadline = answers.word(place), time.monotonic() + ANSWER_SECONDS
        while status & COMMAND_BUSY:
            if time.monotonic() > deadline:
                raise WireError(f"a command of the debug module at {self._tap.line.name} is not done after {ANSWER_SECONDS:g} seconds; reset it")
            self._tap.pass_time(8)
            status = self._tap.read(ABSTRACTCS)
        return answers, built, status

    def _wait_for(self, bit: int, what: str) -> int:
        deadline = time.monotonic() + ANSWER_SECONDS
        while not (status := self._tap.read(DMSTATUS)) & bit:
            if time.monotonic() > deadline:
                raise WireError(f"the processor at {self._tap.line.name} does not {what} (dmstatus 0x{status:08x} after {ANSWER_SECONDS:g} seconds); reset it")
            self._tap.pass_time(8)
        return status
