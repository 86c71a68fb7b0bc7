"""A GDB server in this process: memory, and a processor that recognises the programs of the wire tests. It can damage what it sends."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from ansor.measure.wire.gdb_packets import Decoder, escaped, framed
from ansor.measure.wire.wire import FlashRegion
from ansor.testing.wire_programs import RISCV, STOP, SUM, WORDS
from tests.measure.wire.nor_flash import NorFlash, memory_map

START, SIZE = 0x80000000, 0x10000
FLASH = (FlashRegion(START + 0x8000, 0x1000, 0x400), FlashRegion(START + 0x9000, 0x2000, 0x1000))
"""In its memory, if it has flash."""
DESCRIPTION = (b'<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target><architecture>riscv:rv32</architecture>'
               b'<xi:include href="cpu.xml"/></target>')
REGISTERS = b"<feature>" + b"".join(b'<reg name="%b" bitsize="32"/>' % (b"x%d" % n if n < 32 else b"pc") for n in range(33)) + b"</feature>"


@dataclass
class FakeGdb:
    """features: its answer to qSupported. lacks: prefixes of packets that it does not know. says: special answers, by prefix.

    damage: bytes as they are sent, into bytes that arrive. flash: what its memory map has."""

    features: bytes = b"PacketSize=400;QStartNoAckMode+;qXfer:features:read+"
    lacks: tuple[bytes, ...] = ()
    says: dict[bytes, bytes] = field(default_factory=dict)
    damage: Callable[[bytes], bytes] = bytes
    flash: tuple[FlashRegion, ...] = ()
    memory: bytearray = field(default_factory=lambda: bytearray(SIZE))
    registers: list[int] = field(default_factory=lambda: [0] * 33)
    seen: list[bytes] = field(default_factory=list)
    running: bool = False
    acks: bool = True
    last: bytes = b""

    def __post_init__(self) -> None:
        self.nor = NorFlash(self.flash, self._put)
        self.features += b";qXfer:memory-map:read+" if self.flash else b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> FakeGdb:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop()
        self._thread.join(10)

    def drop(self) -> None:
        """End the connection."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._socket, _ = self._listener.accept()
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.acks, self.running, self.last = True, False, b""
                self.nor.forget()
                with self._socket, contextlib.suppress(OSError):
                    self._talk(self._socket)

    def _talk(self, line: socket.socket) -> None:
        decoder = Decoder()
        while data := line.recv(65536):
            if self.running and b"\x03" in data:
                self.running = False
                self._send(framed(b"T02thread:01;"))
            decoder.feed(data)
            while (piece := decoder.take()) is not None:
                if piece.kind == "nack" and self.last:
                    line.sendall(self.damage(self.last))
                elif piece.kind == "packet":
                    self._send(b"+" if self.acks else b"")
                    if (answer := self._answer(piece.data)) is not None:
                        self.last = framed(answer)
                        self._send(self.last)
                        self.acks = self.acks and piece.data != b"QStartNoAckMode"
                elif piece.kind == "damaged":
                    self._send(b"-" if self.acks else b"")

    def _send(self, data: bytes) -> None:
        if data and self._socket is not None:
            self._socket.sendall(self.damage(data))

    def _answer(self, data: bytes) -> bytes | None:
        self.seen.append(data)
        for begins, answer in self.says.items():
            if data.startswith(begins):
                return answer
        if any(data.startswith(begins) for begins in self.lacks):
            return b""
        for begins, does in ((b"qSupported", self._features), (b"QStart", self._fine), (b"qXfer", self._description), (b"?", self._state), (b"m", self._read),
                             (b"M", self._write), (b"X", self._write), (b"p", self._register), (b"P", self._set), (b"g", self._every), (b"G", self._set_every),
                             (b"vFlash", self._flash), (b"Z", self._fine), (b"z", self._fine), (b"c", self._run), (b"qRcmd", self._monitor)):
            if data.startswith(begins):
                return does(data)
        return b""

    def _features(self, data: bytes) -> bytes:
        return self.features

    def _fine(self, data: bytes) -> bytes:
        return b"OK"

    def _state(self, data: bytes) -> bytes:
        return b"T05thread:01;"

    def _description(self, data: bytes) -> bytes:
        _, _, name, span = data.split(b":")[1:]
        at, count = (int(part, 16) for part in span.split(b","))
        text = {b"target.xml": DESCRIPTION, b"cpu.xml": REGISTERS, b"": memory_map(self.flash)}[name]
        return (b"m" if at + count < len(text) else b"l") + escaped(text[at:at + count])

    def _span(self, data: bytes) -> tuple[int, int]:
        address, size = (int(part, 16) for part in data[1:].split(b":")[0].split(b","))
        return address - START, size

    def _read(self, data: bytes) -> bytes:
        at, size = self._span(data)
        if not 0 <= at <= SIZE - size:
            return b"E14"
        digits = self.memory[at:at + size].hex().encode()
        return re.sub(rb"0{12,98}", lambda run: b"0*" + bytes((len(run[0]) + 28,)), digits)

    def _write(self, data: bytes) -> bytes:
        at, size = self._span(data)
        if size == 0:
            return b"OK"
        body = data[data.index(b":") + 1:]
        # The decoder has removed escapes; clients do not send run-length encoding.
        body = body if data.startswith(b"X") else bytes.fromhex(body.decode())
        if not 0 <= at <= SIZE - size or len(body) != size or self.nor.has(at + START, size):
            return b"E14"
        self.memory[at:at + size] = body
        return b"OK"

    def _flash(self, data: bytes) -> bytes:
        return self.nor.answer(data)

    def _put(self, address: int, content: bytes) -> None:
        self.memory[address - START : address - START + len(content)] = content

    def _register(self, data: bytes) -> bytes:
        return self.registers[int(data[1:], 16)].to_bytes(4, "little").hex().encode()

    def _set(self, data: bytes) -> bytes:
        number, value = data[1:].split(b"=")
        self.registers[int(number, 16)] = int.from_bytes(bytes.fromhex(value.decode()), "little")
        return b"OK"

    def _every(self, data: bytes) -> bytes:
        return b"x" * 8 + b"".join(value.to_bytes(4, "little").hex().encode() for value in self.registers[1:])

    def _set_every(self, data: bytes) -> bytes:
        values = bytes.fromhex(data[1:].decode())
        self.registers = [int.from_bytes(values[at:at + 4], "little") for at in range(0, len(values), 4)]
        return b"OK"

    def _run(self, data: bytes) -> bytes | None:
        at = self.registers[32] - START
        if self.memory.startswith(RISCV.loops, at):
            self.running = True
            return None
        if self.memory.startswith(RISCV.traps, at):
            self.registers[32] += 12
            return b"T05swbreak:;"
        total = sum(int.from_bytes(self.memory[at + word:at + word + 4], "little") for word in (WORDS, WORDS + 4)) & 0xFFFFFFFF
        self.memory[at + SUM:at + SUM + 4] = total.to_bytes(4, "little")
        self.registers[32] += STOP
        return b"T05swbreak:;"

    def _monitor(self, data: bytes) -> bytes:
        self._send(framed(b"O" + b"said\n".hex().encode()))
        return b"OK"
