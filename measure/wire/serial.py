"""A wire to the monitor on a board, over a serial line or any byte stream: `open_serial`.

The monitor is a small resident program on the board (`measure/wire/monitor/`); docs/wires.md says how to install it. It reads back everything written
to compare its CRC-32, so that bad memory is noticed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlsplit

from ansor.errors import DeviceError
from ansor.measure.wire.link import TRAP_FACTS, Facts, Fault, Kind, Link, Request
from ansor.measure.wire.packing import LITERALS, packed
from ansor.measure.wire.port import Port, SerialPort, socket_port
from ansor.measure.wire.wire import Abilities, Reason, Stopped, Traffic, WireError

SUM_BYTES = 1 << 15
"""Bytes per checksum request: well under a second on any board."""

WRITE_ATTEMPTS = 3
LEAST_PACKED = 64  # bytes: less is sent unpacked
REASONS: dict[int, Reason] = {1: "stop", 2: "trap", 3: "timeout"}
BAUD = 115_200
FORMS = "serial:/dev/ttyUSB0?baud=115200&reset=dtr, socket://host:port, loop://, or the path of a terminal"


class SerialWire:
    """A `Wire` over a port with a monitor behind it. `line_reset` resets the board through the line and returns the port to continue with."""

    def __init__(self, port: Port, name: str, line_reset: Callable[[], Port] | None = None, bytes_per_second: float = BAUD / 10) -> None:
        self._name, self._line_reset = name, line_reset
        self._sent = self._received = self._unsent = 0
        self._closed = False
        self._link = Link(port, name, bytes_per_second)
        self._damaged_before = 0
        try:
            self._facts = self._link.greet()
        except WireError:
            port.close()
            raise

    @property
    def name(self) -> str:
        """The text that opens it again."""
        return self._name

    @property
    def facts(self) -> Facts:
        """What the monitor reports about its board."""
        return self._facts

    @property
    def abilities(self) -> Abilities:
        """What it can do."""
        told = self._facts.abilities
        return replace(told, resets=told.resets or self._line_reset is not None)

    @property
    def traffic(self) -> Traffic:
        """Its traffic so far."""
        counts = self._link.counts
        overhead = max(0, counts.bytes + self._unsent - self._sent - self._received)
        return Traffic(self._sent, self._received, overhead, counts.repeated, self._damaged_before + self._link.damaged)

    @property
    def line_bytes(self) -> int:
        """Bytes that went through the line, both ways."""
        return self._link.counts.bytes

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes of memory, from any address."""
        self._check(address, size)
        answers = self._link.exchange([Request(Kind.READ, struct.pack("<QI", at, count), count) for at, count in self._pieces(address, size)])
        found = b"".join(self._fine(answer, "read", address, size) for answer in answers)
        if len(found) != size:
            raise WireError(f"{self._name}: asked for {size} bytes at {address:#x}, the monitor gave {len(found)}")
        self._received += size
        return found

    def write(self, address: int, data: bytes) -> None:
        """Write memory, at any address; when this returns, the monitor has read it back."""
        self._check(address, len(data))
        wrong: list[int] = []
        for _ in range(WRITE_ATTEMPTS if data else 0):
            wrong = self._written(address, data)
            if not wrong:
                break
        if wrong:
            raise WireError(f"{self._name}: memory at {wrong[0]:#x} does not keep written data; is it RAM, and not the monitor's own?")
        self._sent += len(data)

    def crc(self, address: int, size: int) -> int:
        """CRC-32 of up to `SUM_BYTES` of memory, computed by the monitor."""
        self._check(address, size)
        (answer,) = self._link.exchange([Request(Kind.SUM, struct.pack("<QI", address, size), 4)])
        return int.from_bytes(self._fine(answer, "sum up", address, size), "little")

    def execute(self, entry: int, stop: int, seconds: float) -> Stopped:
        """Run from `entry` until `stop` is reached, for `seconds` at most.

        The monitor ends a program that does not end, if it can; else a reset through the line does. If neither is possible, it
        raises WireError, and somebody must reset the board.
        """
        self._check(entry, 0)
        self._check(stop, 16)
        milliseconds = min(0xFFFFFFFF, max(1, round(seconds * 1e3)))
        answer = self._link.run(struct.pack("<QQI", entry, stop, milliseconds), seconds)
        if answer is None:
            return self._does_not_end(entry, seconds)
        if isinstance(answer, Fault) and answer.code == 3:
            raise WireError(f"{self._name}: the monitor cannot jump back from {stop:#x}, which is too far away; link the program closer to it")
        how, cause, place = TRAP_FACTS.unpack(self._fine(answer, "put a jump at", stop, 16))
        if how not in REASONS:
            raise WireError(f"{self._name}: the monitor reports an unknown end of the run ({how})")
        return Stopped(REASONS[how], place if place and how != 1 else None, f"cause {cause:#x}" if how == 2 else "")

    def reset(self) -> None:
        """Restart the board: through the line if it can reset boards, else by a request to the monitor."""
        if self._closed:
            raise WireError(f"{self._name} was closed")
        if self._line_reset is not None:
            self._reset_by_line(self._line_reset)
        elif self._facts.abilities.resets:
            self._facts = self._link.restart()
        else:
            raise WireError(f"{self._name}: neither the monitor nor the line can reset this board; do it by hand")

    def close(self) -> None:
        """Release the board."""
        self._closed = True
        self._link.port.close()

    def _check(self, address: int, size: int) -> None:
        if self._closed:
            raise WireError(f"{self._name} was closed")
        if address < 0 or size < 0 or address + size > 1 << self._facts.abilities.bits:
            raise WireError(f"{self._name}: asked for {size} bytes at {address:#x}; the board's addresses have {self._facts.abilities.bits} bits")

    def _pieces(self, address: int, size: int, most: int = 0) -> list[tuple[int, int]]:
        most = most or self._facts.abilities.chunk
        return [(address + start, min(most, size - start)) for start in range(0, size, most)]

    def _written(self, address: int, data: bytes) -> list[int]:
        """Write once; returns the addresses of the parts that are wrong afterwards."""
        sums = self._pieces(address, len(data), SUM_BYTES)
        parts = self._writes(address, data)
        requests = [*parts]
        requests += [Request(Kind.SUM, struct.pack("<QI", at, count), 4) for at, count in sums]
        answers = [self._fine(answer, "write", address, len(data)) for answer in self._link.exchange(requests)]
        expected = [zlib.crc32(data[at - address : at - address + count]).to_bytes(4, "little") for at, count in sums]
        return [at for (at, _), found, right in zip(sums, answers[len(parts) :], expected, strict=True) if found != right]

    def _writes(self, address: int, data: bytes) -> list[Request]:
        """Requests that write it: packed, if the monitor unpacks and that is shorter."""
        chunk = self._facts.abilities.chunk
        parts = packed(data, chunk) if self._facts.unpacks and len(data) >= LEAST_PACKED and chunk > LITERALS else []
        saved = len(data) - sum(len(tokens) for _, tokens in parts)
        if parts and saved > 0:
            self._unsent += saved
            return [Request(Kind.UNPACK, struct.pack("<Q", address + start) + tokens) for start, tokens in parts]
        return [Request(Kind.WRITE, struct.pack("<Q", at) + data[at - address : at - address + count]) for at, count in self._pieces(address, len(data))]

    def _fine(self, answer: bytes | Fault, what: str, address: int, size: int) -> bytes:
        if isinstance(answer, bytes):
            return answer
        if answer.code == 1:
            raise WireError(f"{self._name}: asked to {what} {size} bytes at {address:#x}, and the processor trapped ({answer.cause:#x}); is there memory?")
        raise WireError(f"{self._name}: the monitor cannot {what} {size} bytes at {address:#x} (code {answer.code})")

    def _does_not_end(self, entry: int, seconds: float) -> Stopped:
        if self._line_reset is None:
            # Perhaps only the answer was lost, so the state of the board is unknown.
            cure = "reset the board by hand, or give the line a way to do it"
            raise WireError(f"{self._name}: the program at {entry:#x} did not end in {seconds:g} s, and this line cannot halt it; {cure}")
        self._reset_by_line(self._line_reset)
        return Stopped("timeout", None, "the board was reset")

    def _reset_by_line(self, line_reset: Callable[[], Port]) -> None:
        self._link.forget()
        before, port = self._link.port, line_reset()
        if port is not before:
            before.close()
            self._damaged_before += self._link.damaged
            self._link.replace_port(port)
        self._facts = self._link.greet()


@dataclass(frozen=True, slots=True)
class SerialAddress:
    """The parsed text of a serial wire. reset: "dtr" or "rts", the control line that resets the board, or ''."""

    url: str
    baud: int = BAUD
    reset: str = ""


def parse_address(text: str) -> SerialAddress:
    """Parse a text, one of `FORMS`. Raises DeviceError that explains the mistake."""
    path, _, query = text.strip().partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    url = path.removeprefix("serial:")
    url = url.removeprefix("//") if url.startswith("///") else url  # serial:///dev/ttyACM0, as other programs write it
    unknown = sorted(set(options) - {"baud", "reset"})
    if not url or unknown:
        raise DeviceError(f"{text!r} is not a serial line: {f'it has no option {unknown[0]!r}' if unknown else 'no port is named'}; write {FORMS}")
    baud = options.get("baud", str(BAUD))
    if not (baud.isascii() and baud.isdigit() and 0 < int(baud[:9]) < 100_000_000):
        raise DeviceError(f"{text!r}: baud={baud} is not a speed; write a number of bits per second, such as baud={BAUD}")
    if options.get("reset", "dtr") not in ("dtr", "rts"):
        raise DeviceError(f"{text!r}: reset={options['reset']} is not a line that resets a board; write reset=dtr or reset=rts")
    return SerialAddress(url, int(baud), options.get("reset", ""))


def open_serial(text: str) -> SerialWire:
    """Open the wire that a text names: one of `FORMS`. Raises DeviceError for another text, WireError if no monitor answers."""
    address = read_serial(text)
    if address.url.startswith("socket://"):
        return SerialWire(socket_port(*_place(address, text), text), text)
    port = SerialPort(address.url, address.baud, text)

    def by_line() -> Port:
        port.pulse(address.reset)
        return port

    return SerialWire(port, text, by_line if address.reset else None, address.baud / 10)


def read_serial(text: str) -> SerialAddress:
    """What `open_serial` opens. Raises DeviceError for another text."""
    address = parse_address(text)
    if address.url.startswith("socket://"):
        _place(address, text)
    return address


def _place(address: SerialAddress, text: str) -> tuple[str, int]:
    """Host and port of a TCP connection. Raises DeviceError if they are missing."""
    try:
        parts = urlsplit(address.url)
        host, number = parts.hostname, parts.port
    except ValueError as error:
        raise DeviceError(f"{text!r}: {error}; write socket://host:port") from error
    if not host or not number or address.reset:
        raise DeviceError(f"{text!r}: {'a TCP connection has no line that resets a board' if address.reset else 'host or port is missing'}; write socket://host:port")
    return host, number
