"""A wire through a GDB server: QEMU's, OpenOCD's, pyOCD's, J-Link's, or a Black Magic Probe.

    open_gdb("gdb://127.0.0.1:3333?reset=reset+halt")       open_gdb("gdb:/dev/ttyACM0?init=swdp_scan&attach=1")

Options: `arch` (if the server does not describe the processor), `reset` and `init` (commands for the server itself, as after `monitor` in GDB; `init`
may be repeated), `attach` (the number of a target to attach to), `timeout` (seconds for an answer), `ack=1` (packets are acknowledged), `baud`.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from ansor.measure.wire.gdb_flash import program, read_flash
from ansor.measure.wire.gdb_link import Link, SerialLink, TcpLink
from ansor.measure.wire.gdb_registers import KNOWN, THUMB_BIT, Architecture
from ansor.measure.wire.gdb_server import Refused, Server
from ansor.measure.wire.gdb_session import Session
from ansor.measure.wire.wire import Abilities, FlashError, FlashRegion, Stopped, Traffic, WireError

RESETS = ("reset halt", "system_reset", "reset")
"""OpenOCD and pyOCD; QEMU's monitor; J-Link and Black Magic."""

SIGNALS = {4: "SIGILL, an illegal instruction", 5: "SIGTRAP, a breakpoint of its own", 6: "SIGABRT",
           7: "SIGBUS, a bus error", 8: "SIGFPE, an arithmetic fault", 10: "SIGBUS, a bus error", 11: "SIGSEGV, no access to memory"}
FAULTS = (4, 6, 7, 8, 10, 11)
INTERRUPTED = 2
STOPPED = re.compile(rb"[ST]([0-9a-fA-F]{2})")
HALTING = 5.0
LOOKING = 20.0  # seconds after which a program is briefly halted, as its stop message may have been lost
"""HALTING: seconds within which a board must halt on request."""
TRIES, BETWEEN = 20, 0.1
"""Attempts to connect, and seconds between two."""
OPTIONS = ("arch", "reset", "init", "attach", "timeout", "ack", "baud")


@dataclass(frozen=True, slots=True)
class Options:
    """The options in the text of a wire."""

    arch: str = ""
    reset: str = ""
    init: tuple[str, ...] = ()
    attach: str = ""
    timeout: float = 10.0
    ack: bool = False
    baud: int = 115200


@dataclass(slots=True)
class _Counts:
    """Bytes and packets, including lost connections."""

    sent: int = 0
    received: int = 0
    overhead: int = 0
    repeated: int = 0
    damaged: int = 0


class GdbWire:
    """See `Wire`. The board is halted whenever no `execute` waits, and stays so when the wire is closed.

    A refusal by the server does not affect the connection; after any other WireError only `reset` reconnects."""

    def __init__(self, name: str, address: str | tuple[str, int], options: Options) -> None:
        self._name, self._address, self._options = name, address, options
        self._counts, self._closed, self._lost, self._resets = _Counts(), False, "", False
        self._link: Link | None = None
        self._session: Session | None = None
        self._last = 0
        self._server: Server | None = None
        self._connect()

    @property
    def name(self) -> str:
        """The text that opens it again."""
        return self._name

    @property
    def abilities(self) -> Abilities:
        """See `Wire`; as negotiated with the server."""
        known = self._server
        chunk, architecture = (known.chunk, known.architecture) if known else (1, None)
        bits, processor = (architecture.pc.bits, architecture.name) if architecture else (0, "")
        return Abilities(halts=True, resets=self._resets, chunk=chunk, bits=bits, processor=processor)

    @property
    def traffic(self) -> Traffic:
        """See `Wire`."""
        counts = self._counts
        return Traffic(counts.sent, counts.received, counts.overhead, counts.repeated, counts.damaged)

    def read(self, address: int, size: int) -> bytes:
        """See `Wire`."""
        server, made = self._ready(address, size), bytearray()
        while len(made) < size:
            with self._asking():
                data = server.read(address + len(made), min(size - len(made), server.chunk))
            made += data
            self._counts.received += len(data)
            self._counts.overhead -= min(len(data), self._last)
        return bytes(made)

    def write(self, address: int, data: bytes) -> None:
        """See `Wire`."""
        server = self._ready(address, len(data))
        for at in range(0, len(data), server.chunk):
            piece = bytes(data[at:at + server.chunk])
            with self._asking():
                server.write(address + at, piece)
            self._counts.sent += len(piece)
            self._counts.overhead -= min(len(piece), self._last)

    def flash(self) -> tuple[FlashRegion, ...]:
        """See `Flashing`; as the server's memory map says."""
        server = self._ready(0, 0)
        with self._asking():
            return read_flash(server)

    def program(self, parts: Sequence[tuple[int, bytes]]) -> None:
        """See `Flashing`. A failure ends the connection: the server then drops what it holds of an unfinished group."""
        server = self._ready(*((parts[0][0], parts[-1][0] + len(parts[-1][1]) - parts[0][0]) if parts else (0, 0)))
        if not parts:
            return
        with self._asking():
            try:
                program(server, parts)
                halted(server)
            except Refused as error:
                raise FlashError(str(error)) from None
        self._counts.sent += (size := sum(len(content) for _, content in parts))
        self._counts.overhead -= min(size, self._last)

    def execute(self, entry: int, stop: int, seconds: float) -> Stopped:
        """See `Wire`."""
        server = self._ready(entry, 4)
        if (architecture := server.architecture) is None:
            raise WireError(f"{self.name}: the GDB server does not say what processor it has; add `arch=` and one of {', '.join(KNOWN)}")
        if not 0 <= stop < 1 << architecture.pc.bits or not 0 < seconds < 1e9:
            raise WireError(f"{self.name}: a program cannot run to {stop:#x} for {seconds:g} s")
        with self._asking():
            return execute(server, architecture, (entry, stop), seconds)

    def reset(self) -> None:
        """See `Wire`. It reconnects if the connection was lost."""
        if not self._closed and (self._lost or self._server is None):
            self._connect()
        server, said = self._ready(0, 0), []
        if not self._resets:
            raise WireError(f"{self.name}: this GDB server has no monitor commands, and so no reset")
        with self._asking():
            for command in (self._options.reset,) if self._options.reset else RESETS:
                taken, text = server.monitor(command)
                if taken:
                    return halted(server)
                said.append(f"{command!r}: {text}")
        raise WireError(f"{self.name}: the board cannot be reset; the GDB server says to {'; to '.join(said)}; set the right command with `?reset=`")

    def close(self) -> None:
        """See `Wire`."""
        self._closed = True
        if (link := self._link) is not None:
            link.close()

    def _ready(self, address: int, size: int) -> Server:
        """The server, once the request is known to be valid."""
        if self._closed:
            raise WireError(f"the wire {self.name} was closed")
        if self._lost or self._server is None:
            raise WireError(f"{self.name}: the connection was lost ({self._lost}); `reset` opens it again")
        bits = self.abilities.bits or 64
        if address < 0 or size < 0 or address + size > 1 << bits:
            raise WireError(f"{self.name}: {size} bytes at {address:#x} are outside the address space of a processor of {bits} bits")
        return self._server

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Counts traffic, adds the wire's name to errors, and notes whether the connection is lost."""
        if (session := self._session) is None:
            raise WireError(f"{self.name}: there is no connection")
        raw, repeated, damaged = session.raw, session.repeated, session.damaged
        try:
            yield
        except Refused as error:
            raise Refused(f"{self.name}: {error}") from None
        except WireError as error:
            self._lost = str(error)
            session.close()
            kind = FlashError if isinstance(error, FlashError) else WireError
            raise kind(f"the wire {self.name} was closed" if self._closed else f"{self.name}: {error}") from None
        finally:
            counts, self._last = self._counts, session.raw - raw
            counts.overhead += self._last
            counts.repeated += session.repeated - repeated
            counts.damaged += session.damaged - damaged

    def _connect(self) -> None:
        """Connect and halt the board. A server that hangs up at once is retried: it may not have noticed yet that the last connection ended."""
        for _ in range(TRIES - 1):
            try:
                return self._connect_once()
            except WireError:
                if self._session is None or self._session.heard or self._closed or not self._session.hung_up:
                    raise
            time.sleep(BETWEEN)
        return self._connect_once()

    def _connect_once(self) -> None:
        """One attempt."""
        options, address = self._options, self._address
        try:
            link: Link = SerialLink(address, options.baud) if isinstance(address, str) else TcpLink(*address)
        except WireError as error:
            self._session = None
            raise WireError(f"{self.name}: {error}") from None
        session = Session(link, options.timeout)
        self._link, self._server, self._session = link, None, session
        if self._closed:
            link.close()
        first = [b"qRcmd," + command.encode().hex().encode() for command in options.init]
        first += [b"!", b"vAttach;" + options.attach.encode()] if options.attach else []
        try:
            with self._asking():
                server = Server(session)
                session.greet()
                server.negotiate(options.ack, options.arch, tuple(first))
                halted(server)
                self._resets = session.ask(b"qRcmd," + b"version".hex().encode(), heard=bytearray()) != b""
        except BaseException:
            session.close()
            raise
        self._server, self._lost = server, ""


def halted(server: Server) -> None:
    """Make sure the board is halted, or raise WireError."""
    server.session.start(b"?")
    answer = server.session.stopped(server.session.seconds / 2)
    if answer is None:
        server.session.interrupt()
        answer = server.session.stopped(HALTING)
        server.session.settle()
    if answer is None or not STOPPED.match(answer):
        raise WireError(f"the board does not halt: the GDB server says {(answer or b'nothing')[:60]!r} when it is asked for its state")


def execute(server: Server, architecture: Architecture, span: tuple[int, int], seconds: float) -> Stopped:
    """Run from the first address of `span` to the second."""
    entry, stop = (address & ~1 if architecture.thumb else address for address in span)
    if architecture.status is not None:
        server.set_register(architecture.status, THUMB_BIT)
    server.set_register(architecture.pc, entry)
    away = server.set_breakpoint(stop)
    deadline = time.monotonic() + seconds
    while True:
        server.session.start(b"c")
        late, signal = _stopped(server, min(LOOKING, deadline - time.monotonic()))
        pc = server.register(architecture.pc)
        if not late or pc == stop or signal in FAULTS or time.monotonic() >= deadline:
            break
    if server.session.ask(away) != b"OK":
        raise WireError(f"the breakpoint at {stop:#x} cannot be removed")
    if pc == stop:
        return Stopped("stop", pc)
    if late and signal not in FAULTS:
        return Stopped("timeout", pc)
    if signal == INTERRUPTED:
        raise WireError(f"another client halted the program, at {pc:#x}; does another debugger use the board?")
    return Stopped("trap", pc, SIGNALS.get(signal, f"signal {signal}"))


def _stopped(server: Server, seconds: float) -> tuple[bool, int]:
    """Wait until the program stops; if it does not, or its message was lost, halt it. Returns whether that was needed, and the signal."""
    answer = server.session.stopped(max(0.0, seconds))
    if late := answer is None:
        server.session.interrupt()
        answer = server.session.stopped(HALTING)
        server.session.settle()
    found = STOPPED.match(answer or b"")
    if found is None:
        raise WireError(f"the program neither stopped nor could be halted: the GDB server says {(answer or b'nothing')[:60]!r}")
    return late, int(found[1], 16)


def open_gdb(text: str) -> GdbWire:
    """Open the board behind the server that a text names. Raises WireError, also for another text."""
    place, options = read_gdb(text)
    return GdbWire(text, place, options)


def read_gdb(text: str) -> tuple[tuple[str, int] | str, Options]:
    """Where the server is: `gdb://HOST:PORT`, or `gdb:PORT_OF_THIS_MACHINE` for a serial line; options as in a URL. Raises WireError for another text."""
    try:
        parts = urlsplit(text)
        given = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query), max_num_fields=50)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise WireError(f"{text!r} is not gdb://HOST:PORT?OPTION=VALUE: {error}") from None
    if parts.scheme != "gdb" or not ((host and port) or (parts.path and not parts.netloc)) or (host and parts.path not in ("", "/")) or parts.fragment:
        raise WireError(f"{text!r} is not gdb://HOST:PORT?OPTION=VALUE, and not gdb:/dev/NAME?OPTION=VALUE")
    return (host, port) if host and port else parts.path, _options(text, given)


def _options(text: str, given: list[tuple[str, str]]) -> Options:
    """The validated options of a text."""
    values = dict(given)
    for name, value in given:
        if name not in OPTIONS or not value.isascii() or not value or (name != "init" and values[name] != value):
            raise WireError(f"{text!r}: `{name}={value}` is not an option, or is given twice; the options are {', '.join(OPTIONS)}")
    if values.get("arch", "") not in ("", *KNOWN):
        raise WireError(f"{text!r}: `arch={values['arch']}` is not known; there are {', '.join(KNOWN)}")
    timeout, baud = values.get("timeout", "10"), values.get("baud", "115200")
    right = re.fullmatch(r"\d{1,4}(\.\d{1,3})?", timeout) and float(timeout) > 0 and values.get("ack", "1") in ("0", "1")
    if not right or not re.fullmatch(r"[1-9]\d{1,7}", baud):
        raise WireError(f"{text!r}: `timeout` is a number of seconds below 10000, `baud` a whole number, `ack` 0 or 1")
    init = tuple(value for name, value in given if name == "init")
    return Options(values.get("arch", ""), values.get("reset", ""), init, values.get("attach", ""), float(timeout), values.get("ack") == "1", int(baud))
