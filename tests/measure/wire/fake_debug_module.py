"""A remote bitbang server with a JTAG port and a RISC-V debug module over a few kilobytes of memory. Its fields choose what it does wrong."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

BASE = 0x80000000
EBREAK = 0x00100073
SHIFT_DR, UPDATE_DR, CAPTURE_DR, IDLE, RESET, SHIFT_IR, UPDATE_IR = 4, 8, 3, 1, 0, 11, 15
# Test-Logic-Reset, Run-Test/Idle, then Select, Capture, Shift, Exit1, Pause, Exit2, Update of DR, and of IR.
NEXT = [(1, 0), (1, 2), (3, 9), (4, 5), (4, 5), (6, 8), (6, 7), (4, 8), (1, 2), (10, 0), (11, 12), (11, 12), (13, 15), (13, 14), (11, 15), (1, 2)]


@dataclass
class FakeDebugModule:
    """The chip. command_clocks, access_clocks: clocks in Run-Test/Idle that a command, and an access of the debug module, take. errors: cmderr of the next
    commands. refuses: debug module registers whose access fails."""

    bits: int = 64
    data: int = 2
    program: int = 2
    ends_itself: bool = True
    automatic: bool = True
    csr_access: bool = True
    idcode: int = 0x10001FFF
    transport: int = 0x71
    status: int = 2 | 1 << 7
    command_clocks: int = 0
    access_clocks: int = 0
    errors: list[int] = field(default_factory=list)
    refuses: tuple[int, ...] = ()
    deaf: tuple[str, ...] = ()
    memory: bytearray = field(default_factory=lambda: bytearray(1 << 13))
    fixed: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        self.state, self.pins, self.tdo = RESET, 0, 0
        self.instruction = 1
        self.shift = self.length = 0
        self.result, self.sticky, self.pending = 0, 0, 0
        self.registers = {8: 0x1234, 9: 0x5678}
        self.csrs = {0x7B0: 3, 0x7B1: BASE, 0x7A1: 2 << (self.bits - 4), 0x7A2: 0}
        self.words = [0] * self.data
        self.buffer = [0] * self.program
        self.halted, self.acknowledged, self.resets = False, False, 0
        self.active = self.command = self.auto = self.code = self.busy = 0
        self.commands = 0

    def step(self, character: int) -> int | None:
        """Process one character; returns the answer."""
        if character == 82:
            return 48 + self.tdo
        pins = character - 48
        if not 0 <= pins <= 7:
            return None
        if pins & 4 and not self.pins & 4:
            self._rise(self.pins >> 1 & 1, self.pins & 1)
        elif self.pins & 4 and not pins & 4:
            self._fall()
        self.pins = pins
        return None

    def _rise(self, mode: int, bit: int) -> None:
        if self.state in (SHIFT_DR, SHIFT_IR):
            self.shift = self.shift >> 1 | bit << (self.length - 1)
        self.state = NEXT[self.state][mode]

    def _fall(self) -> None:
        state = self.state
        if state in (SHIFT_DR, SHIFT_IR):
            self.tdo = self.shift & 1
        elif state == CAPTURE_DR:
            self._capture()
        elif state == 10:
            self.shift, self.length = 1, 5
        elif state == UPDATE_IR:
            self.instruction = self.shift
        elif state == UPDATE_DR:
            self._update()
        elif state == RESET:
            self.instruction = 1
        elif state == IDLE:
            self.pending = max(0, self.pending - 1)
            self.busy = max(0, self.busy - 1)

    def _capture(self) -> None:
        if self.instruction == 0x11:
            if self.pending:
                self.sticky = 3
            self.shift, self.length = (self.result & ~3) | self.sticky, (self.transport >> 4 & 63) + 34
        else:
            self.shift, self.length = {1: self.idcode, 0x10: self.transport}.get(self.instruction, 0), 32

    def _update(self) -> None:
        if self.instruction == 0x10 and self.shift >> 16 & 1:
            self.sticky = 0
        if self.instruction != 0x11 or self.sticky:
            return
        operation, word, address = self.shift & 3, self.shift >> 2 & 0xFFFFFFFF, self.shift >> 34
        if operation and address in self.refuses:
            self.sticky = 2
            return
        self.pending = self.access_clocks if operation else 0
        if operation == 1:
            word = self._read(address)
        elif operation == 2:
            self._write(address, word)
        self.result = address << 34 | word << 2

    def _read(self, address: int) -> int:
        if 4 <= address < 4 + self.data:
            if self.busy:
                self.code = self.code or 1
                return 0xFFFFFFFF
            word = self.words[address - 4]
            if self.auto >> (address - 4) & 1:
                self._start()
            return word
        known = {0x10: self.active, 0x11: self._status(), 0x12: 1 << 16 | 0x380, 0x18: self.auto}
        known[0x16] = self.data | self.code << 8 | bool(self.busy) << 12 | self.program << 24
        return known.get(address, 0)

    def _status(self) -> int:
        return self.status | self.halted * (3 << 8) | (not self.halted) * (3 << 10) | self.acknowledged * (3 << 16) | self.ends_itself << 22

    def _write(self, address: int, word: int) -> None:
        if self.busy and (4 <= address < 4 + self.data or address == 0x17 or 0x20 <= address < 0x20 + self.program):
            self.code = self.code or 1
            return
        if 4 <= address < 4 + self.data:
            self.words[address - 4] = word
            if self.auto >> (address - 4) & 1:
                self._start()
        elif 0x20 <= address < 0x20 + self.program:
            self.buffer[address - 0x20] = word
        elif address == 0x10:
            self._control(word)
        elif address == 0x16:
            self.code &= ~(word >> 8)
        elif address == 0x17:
            self.command = word
            self._start()
        elif address == 0x18 and self.automatic:
            self.auto = word & 1

    def _control(self, word: int) -> None:
        self.active = word & 1 if "activate" not in self.deaf else 0
        if word >> 1 & 1:
            self.halted, self.resets = False, self.resets + 1
            self.csrs[0x7B1] = 0x1000
        if word >> 31 and "halt" not in self.deaf and not self.halted:
            self.halted = True
            self.csrs[0x7B0] = self.csrs[0x7B0] & ~(7 << 6) | 3 << 6
        if word >> 30 & 1 and self.halted and "resume" not in self.deaf:
            self.acknowledged, self.halted = True, False
            self._go()

    def _go(self) -> None:
        """Skip instructions up to an ebreak or a hardware breakpoint; without one the program does not end."""
        at = self.csrs[0x7B1]
        while BASE <= at < BASE + len(self.memory) - 4:
            broken = self.csrs[0x7A1] >> 12 & 15 == 1 and self.csrs[0x7A2] == at
            if broken or int.from_bytes(self.memory[at - BASE : at - BASE + 4], "little") == EBREAK:
                self.halted = True
                self.csrs[0x7B0] = self.csrs[0x7B0] & ~(7 << 6) | (2 if broken else 1) << 6
                break
            at += 4
        self.csrs[0x7B1] = at

    def _start(self) -> None:
        self.commands += 1
        self.busy = self.command_clocks
        if self.code or not self.halted:
            self.code = self.code or 4
        elif self.errors:
            self.code = self.errors.pop(0)
        elif self.command >> 24:
            self.code = 2
        else:
            self._access()
            if self.command >> 18 & 1 and not self.code:
                self._run_buffer()

    def _access(self) -> None:
        size, number = self.command >> 20 & 7, self.command & 0xFFFF
        bank, key = (self.registers, number - 0x1000) if number >= 0x1000 else (self.csrs, number)
        if not self.command >> 17 & 1:
            return
        if size > (3 if self.bits == 64 else 2) or (number < 0x1000 and not self.csr_access):
            self.code = 2
        elif self.command >> 16 & 1:
            bank[key] = self.words[0] | (self.words[1] << 32 if size == 3 else 0)
        else:
            value = bank.get(key, 0)
            self.words[0] = value & 0xFFFFFFFF
            if size == 3:
                self.words[1] = value >> 32

    def _run_buffer(self) -> None:
        for word in self.buffer:
            if word == EBREAK:
                return
            if not self._instruction(word):
                self.code = 3
                return
        self.code = 0 if self.ends_itself else 3

    def _instruction(self, word: int) -> bool:
        code, kind, base = word & 127, word >> 12 & 7, self.registers.get(word >> 15 & 31, 0) if word >> 15 & 31 else 0
        low = word >> 7 & 31
        if code == 0x13:
            self.registers[low] = base + (word >> 20)
        elif code == 0x73:
            number, before = word >> 20, self.csrs.get(word >> 20, 0)
            if kind == 1:
                self.csrs[number] = base
            if low:
                self.registers[low] = before
        elif code == 0x03:
            loaded = self._memory(base + (word >> 20), 1 << kind)
            if loaded is not None:
                self.registers[low] = loaded
            return loaded is not None
        elif code == 0x23:
            value = self.registers[word >> 20 & 31] & ((1 << (8 << kind)) - 1)
            return self._memory(base + (word >> 25 << 5 | low), 1 << kind, value) is not None
        return code in (0x13, 0x73, 0x0F)

    def _memory(self, address: int, size: int, value: int | None = None) -> int | None:
        if 0x380 <= address < 0x380 + 4 * self.data:
            index = (address - 0x380) // 4
            for place in range(size // 4 if value is not None else 0):
                self.words[index + place] = int(value or 0) >> 32 * place & 0xFFFFFFFF
            return sum(self.words[index + place] << 32 * place for place in range(size // 4))
        at = address - BASE
        if not 0 <= at <= len(self.memory) - size or at % size:
            return None
        if value is not None and not self.fixed[0] <= address < self.fixed[1]:
            self.memory[at : at + size] = value.to_bytes(size, "little")
        return int.from_bytes(self.memory[at : at + size], "little")


@dataclass
class FakeServer:
    """Serves a chip. silent_after, cut_after: characters after which it stops answering, or closes the connection. garbage: a character for every answer."""

    chip: FakeDebugModule
    silent_after: int | None = None
    cut_after: int | None = None
    garbage: bytes = b""
    characters: int = 0
    connections: int = 0

    def serve(self, listening: socket.socket) -> None:
        """Serve until the socket is closed, one client at a time."""
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                self.connections += 1
                with client, suppress(ConnectionError):
                    self._client(client)

    def _client(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := client.recv(1 << 16):
            answers = bytearray()
            for character in data:
                if character == 81:
                    return
                self.characters += 1
                answer = self.chip.step(character)
                if self.silent_after is not None and self.characters > self.silent_after:
                    continue
                if self.cut_after is not None and self.characters > self.cut_after:
                    return
                if answer is not None:
                    answers += self.garbage or bytes((answer,))
            client.sendall(answers)


@contextmanager
def serving(server: FakeServer) -> Iterator[str]:
    """Start it on a free port of this machine; the text of its wire."""
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.serve, args=(listening,), daemon=True)
    thread.start()
    try:
        yield f"bitbang://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(5)
