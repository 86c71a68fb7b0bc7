"""A GDB server's features and commands: description, registers, breakpoints, monitor commands."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ansor.measure.wire.gdb_packets import LIMIT, escaped
from ansor.measure.wire.gdb_registers import KNOWN, Architecture, Register, described
from ansor.measure.wire.gdb_session import Session, text
from ansor.measure.wire.wire import FlashRegion, WireError

SMALLEST, LARGEST = 64, 1 << 14
HEADER = 40
"""Bytes of a packet other than data: a command, an address, a length, the frame."""
MONITOR_SECONDS = 30.0


class Refused(WireError):
    """The server understood and refused; the connection still works."""


@dataclass(slots=True)
class Features:
    """A server's description of itself."""

    packet: int = 400
    no_acks: bool = False
    description: bool = False
    memory_map: bool = False
    binary: bool = False


@dataclass(slots=True)
class Server:
    """One connection's commands. architecture: None until it is known. flash: what has been read of the memory map (`gdb_flash`)."""

    session: Session
    features: Features = field(default_factory=Features)
    architecture: Architecture | None = None
    single: bool = True
    flash: tuple[FlashRegion, ...] = ()

    def negotiate(self, acks: bool, arch: str, first: tuple[bytes, ...]) -> None:
        """Ask for its features. `first`: packets to send before any request to the board."""
        said = self.session.ask(b"qSupported:swbreak+;hwbreak+").decode("ascii", "replace")
        found = re.search(r"(?:^|;)PacketSize=([0-9a-fA-F]{1,8})(?:;|$)", said)
        size = int(found[1], 16) if found else 400
        can = said.split(";")
        self.features = Features(
            max(SMALLEST, min(size, LARGEST)), "QStartNoAckMode+" in can, "qXfer:features:read+" in can, "qXfer:memory-map:read+" in can
        )
        if self.features.no_acks and not acks and self.session.ask(b"QStartNoAckMode") == b"OK":
            self.session.acks = False
        for command in first:
            self.session.ask(command, MONITOR_SECONDS, bytearray())
        self.architecture = described(lambda name: self.file("features", name)) if self.features.description else None
        if arch:
            self.architecture = self.architecture if self.architecture and self.architecture.name == arch else KNOWN[arch]
        self.features.binary = self.session.ask(b"X0,0:") == b"OK"

    def file(self, kind: str, name: str = "") -> str:
        """A file that the server offers: of its description (`features`), or the `memory-map`; '' if there is none."""
        made, start = bytearray(), b"qXfer:%s:read:%s" % (kind.encode(), name.encode("ascii", "replace")[:200])
        while True:
            answer = self.session.ask(b"%s:%x,%x" % (start, len(made), self.features.packet - HEADER))
            made += answer[1:]
            if answer[:1] not in (b"m", b"l") or answer[:1] == b"l" or len(answer) < 2:
                return made.decode("utf-8", "replace") if answer[:1] in (b"m", b"l") else ""
            if len(made) > LIMIT:
                raise WireError(f"the GDB server's description ({kind}) is longer than {LIMIT} bytes")

    @property
    def chunk(self) -> int:
        """The most bytes of memory per packet."""
        return (self.features.packet - HEADER) // 2

    def read(self, address: int, size: int) -> bytes:
        """Read at most `chunk` bytes of memory."""
        answer = self.session.ask(b"m%x,%x" % (address, size))
        if _is_error(answer):
            raise Refused(f"{size} bytes at {address:#x} cannot be read: the GDB server says {_said(answer)}")
        data = text(answer)
        if len(answer) != 2 * len(data) or not 0 < len(data) <= size:
            raise WireError(f"asked for {size} bytes at {address:#x}, but the GDB server answers {_said(answer)}")
        return data

    def write(self, address: int, data: bytes) -> None:
        """Write at most `chunk` bytes of memory."""
        if self.features.binary:
            answer = self.session.ask(b"X%x,%x:%b" % (address, len(data), escaped(data)))
        else:
            answer = self.session.ask(b"M%x,%x:%b" % (address, len(data), data.hex().encode()))
        self._fine(answer, f"{len(data)} bytes at {address:#x} cannot be written")

    def set_register(self, register: Register, value: int) -> None:
        """Write a register, alone or together with all others."""
        data = value.to_bytes(register.bits // 8, "little")
        if self.single:
            answer = self.session.ask(b"P%x=%b" % (register.number, data.hex().encode()))
            if answer:
                return self._fine(answer, f"register {register.number} cannot be written")
            self.single = False
        every, place = self._all_registers(register), 2 * register.offset
        changed = every[:place] + data.hex().encode() + every[place + 2 * len(data):]
        return self._fine(self.session.ask(b"G" + changed), f"register {register.number} cannot be written")

    def register(self, register: Register) -> int:
        """Read a register."""
        if self.single:
            answer = self.session.ask(b"p%x" % register.number)
            if answer:
                data = text(answer)
                if _is_error(answer) or len(answer) != 2 * len(data) or len(data) > 8:
                    raise Refused(f"register {register.number} cannot be read: the GDB server says {_said(answer)}")
                return int.from_bytes(data, "little")
            self.single = False
        place = 2 * register.offset
        return int.from_bytes(bytes.fromhex(self._all_registers(register)[place:place + register.bits // 4].decode()), "little")

    def _all_registers(self, wanted: Register) -> bytes:
        """All registers as hexadecimal digits; unavailable ones are 0."""
        every = self.session.ask(b"g").replace(b"x", b"0")
        if wanted.offset < 0 or len(every) < 2 * wanted.offset + wanted.bits // 4 or not re.fullmatch(rb"[0-9a-fA-F]+", every):
            raise Refused(f"the GDB server has neither `p` and `P`, nor register {wanted.number} in its answer to `g`: {_said(every)}")
        return every

    def set_breakpoint(self, address: int) -> bytes:
        """Set a breakpoint: in software if that works, else in hardware; in flash the other way round. Returns the packet that removes it."""
        architecture, said = self.architecture, dict[bytes, str]()
        flash = any(one.start <= address < one.end for one in self.flash)
        two = architecture is not None and (architecture.thumb or (architecture.half_words and address % 4 != 0))
        for kind in (b"1", b"0") if flash else (b"0", b"1"):
            packet = b"%b,%x,%d" % (kind, address, 2 if two else 4)
            answer = self.session.ask(b"Z" + packet)
            if answer == b"OK":
                return b"z" + packet
            said[kind] = _said(answer)
        what = f"the GDB server says {said[b'0']} to a software one, {said[b'1']} to a hardware one"
        raise Refused(f"no breakpoint can be set at {address:#x}: {what}")

    def monitor(self, command: str) -> tuple[bool, str]:
        """Whether the server accepted a command for itself, and what it printed."""
        heard = bytearray()
        answer = self.session.ask(b"qRcmd," + command.encode().hex().encode(), MONITOR_SECONDS, heard)
        printed = heard + (b"" if answer == b"OK" or _is_error(answer) else text(answer))
        words = " ".join(printed.decode("utf-8", "replace").split())
        refused = not answer or _is_error(answer) or re.search(r"(?i)unknown command|invalid command|not (?:found|recognized)|unsupported", words)
        return not refused, words[-300:] or (_said(answer) if answer != b"OK" else "")

    def carry_out(self, packet: bytes, otherwise: str, seconds: float) -> None:
        """Send a request that is answered by OK in `seconds`. Raises Refused, beginning with `otherwise`."""
        self._fine(self.session.ask(packet, seconds, bytearray()), otherwise)

    def _fine(self, answer: bytes, otherwise: str) -> None:
        if answer != b"OK":
            raise Refused(f"{otherwise}: the GDB server says {_said(answer)}")


def _is_error(answer: bytes) -> bool:
    """Whether an answer is an error: E and a number, or E. and text."""
    return re.fullmatch(rb"E(?:[0-9a-fA-F]{2}|\..*)", answer, re.DOTALL) is not None


def _said(answer: bytes) -> str:
    """An answer, for error messages."""
    return repr(answer[:60].decode("ascii", "backslashreplace")) if answer else "that it does not know the command"
