"""Boards behind a remote bitbang server (Spike, simulators of hardware, JTAG adapters): `bitbang://HOST:PORT`, to a RISC-V debug module, without OpenOCD."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from ansor.errors import DeviceError
from ansor.measure.wire.bitbang_line import SILENT_SECONDS, BitbangLine
from ansor.measure.wire.breakpoint import clear_breakpoint, set_breakpoint
from ansor.measure.wire.debug_module import DCSR, DPC, HALT_CAUSES, DebugModule
from ansor.measure.wire.program_buffer import PART, Memory
from ansor.measure.wire.tap import Tap
from ansor.measure.wire.wire import Abilities, Stopped, Traffic, WireError

MTVEC, MEPC, MCAUSE = 0x305, 0x341, 0x342
_EBREAKS, _STEP, _MACHINE = 1 << 15 | 1 << 13 | 1 << 12, 1 << 2, 3
LONGEST_PAUSE = 256  # pairs of clocks between two checks of a program


def open_bitbang(text: str, silent: float = SILENT_SECONDS) -> BitbangWire:
    """The board behind `bitbang://HOST:PORT`, halted. silent: seconds without a character before giving up on the server.

    Raises DeviceError for another text, WireError if no board answers."""
    host, port = read_bitbang(text)
    return BitbangWire(text, host, port, silent)


def read_bitbang(text: str) -> tuple[str, int]:
    """Host and port of such a text. Raises DeviceError for another one."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
        rest = parts.path + parts.query + parts.fragment + (parts.username or "")
    except ValueError:
        host, port, rest = None, None, ""
    if not text.startswith("bitbang://") or not host or not port or rest:
        raise DeviceError(f"asked for a board behind a remote bitbang server at {text!r}; write bitbang://HOST:PORT, like bitbang://localhost:9824")
    return host, port


class BitbangWire:
    """The wire. The processor is halted whenever nothing runs."""

    def __init__(self, name: str, host: str, port: int, silent: float = SILENT_SECONDS) -> None:
        self._name, self._place, self._silent = name, (host, port), silent
        self._sent = self._received = 0
        self._closed = False
        self._before = Traffic()
        self._connect()

    @property
    def name(self) -> str:
        """The text that opens it again."""
        return self._name

    @property
    def abilities(self) -> Abilities:
        """What it can do."""
        return Abilities(halts=True, resets=True, chunk=PART, bits=self._module.bits)

    @property
    def traffic(self) -> Traffic:
        """Its traffic. overhead: all characters, both ways, because no character is a byte of memory."""
        overhead = self._before.overhead + self._line.sent + self._line.received
        return Traffic(self._sent, self._received, overhead, self._before.repeated + self._tap.repeated)

    @property
    def module(self) -> DebugModule:
        """The debug module: its registers and parts."""
        return self._module

    @property
    def tap(self) -> Tap:
        """The JTAG port, which knows its IDCODE."""
        return self._tap

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes of memory."""
        data = self._memory.read(address, size)
        self._received += size
        return data

    def write(self, address: int, data: bytes) -> None:
        """Write memory."""
        self._memory.write(address, data)
        self._sent += len(data)

    def execute(self, entry: int, stop: int, seconds: float) -> Stopped:
        """Run from `entry` to `stop`, in machine mode; puts an ebreak there, or sets a hardware breakpoint."""
        hardware = set_breakpoint(self._module, self._memory, stop)
        self._module.fence()
        self._module.write_register(DCSR, self._module.read_register(DCSR) & ~_STEP | _EBREAKS | _MACHINE)
        self._module.write_register(DPC, entry)
        self._module.resume()
        ended = self._wait(seconds)
        if not ended:
            self._module.halt()
        if hardware:
            clear_breakpoint(self._module)
        return self._stopped(ended, stop)

    def reset(self) -> None:
        """Reset the board, which keeps its memory, and halt it. Reconnects if the connection broke."""
        try:
            self._module.reset()
        except WireError:
            if self._closed:
                raise
            self._line.close()
            before = self.traffic
            self._connect()
            self._before = Traffic(overhead=before.overhead, repeated=before.repeated)
            self._module.reset()

    def close(self) -> None:
        """Disconnect from the server; the board stays halted."""
        self._closed = True
        self._line.close()

    def _connect(self) -> None:
        self._line = BitbangLine(*self._place, self._silent)
        try:
            self._tap = Tap(self._line)
            self._module = DebugModule(self._tap)
            self._module.halt()
            self._memory = Memory(self._module)
        except BaseException:
            self._line.close()
            raise

    def _stopped(self, ended: bool, stop: int) -> Stopped:
        place, cause = self._module.read_register(DPC), self._module.read_register(DCSR) >> 6 & 7
        if place == stop:
            return Stopped("stop", place)
        if ended:
            return Stopped("trap", place, HALT_CAUSES.get(cause, f"cause {cause} of dcsr"))
        handler = self._module.read_register(MTVEC) & ~3
        if place != handler:
            return Stopped("timeout", place)
        cause, origin = self._module.read_register(MCAUSE), self._module.read_register(MEPC)
        return Stopped("timeout", place, f"at its trap handler: mcause 0x{cause:x}, mepc 0x{origin:x}")

    def _wait(self, seconds: float) -> bool:
        """Whether the processor halts in time. Clocks it instead of sleeping: some simulators run only while characters come."""
        deadline = time.monotonic() + seconds
        pause = 1
        while not self._module.halted():
            if time.monotonic() > deadline:
                return False
            self._tap.pass_time(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        return True
