"""A line that loses, damages, delays and repeats bytes, by a seed, in simulated time: waiting costs nothing. It may also be slow.

The monitor at its end is the real one, in C, inside of this process.
"""

from __future__ import annotations

import ctypes
import heapq
import random
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

from ansor.codegen.toolchain import cached_library, find_compiler
from ansor.measure.wire import monitor_build
from ansor.measure.wire.wire import WireError

OUT_BYTES = 1 << 18
PART = 32
BAUD_115200 = 11_520
"""Bytes per second."""


class LoopedMonitor:
    """The monitor in this process. There is only one: `begin` resets it to a new board."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._answer = ctypes.create_string_buffer(OUT_BYTES)

    def begin(self, seed: int) -> None:
        self._library.looped_begin(ctypes.c_uint32(seed))

    def power_cycle(self) -> None:
        self._library.monitor_reset()

    def feed(self, data: bytes) -> bytes:
        size = self._library.looped_feed(data, ctypes.c_size_t(len(data)), self._answer)
        return self._answer.raw[:size] if size > 1 << 12 else ctypes.string_at(self._answer, size)

    @property
    def runs(self) -> int:
        return int(self._library.looped_runs())


@cache
def looped_monitor() -> LoopedMonitor:
    """Built once."""
    own, folder = Path(__file__).parent / "looped_monitor.c", monitor_build.FOLDER
    headers = {name: (folder / name).read_text() for name in ("monitor.h", "board.h", "arch.h")}
    text = "#define _GNU_SOURCE\n#define MONITOR_HOSTED\n" + "".join(headers.values())
    for path in (folder / "monitor.c", own):
        text += "\n".join(line for line in path.read_text().splitlines() if not line.startswith('#include "')) + "\n"
    library = ctypes.CDLL(str(cached_library(find_compiler("zig"), "looped-monitor", text, flags=("-w", "-fno-sanitize=all"))))
    library.looped_feed.restype = ctypes.c_size_t
    library.looped_runs.restype = ctypes.c_uint32
    return LoopedMonitor(library)


@dataclass(frozen=True)
class Faults:
    """The probability of each fault, for every piece of at most 64 bytes. seconds: the longest delay or silence."""

    drop: float = 0.0
    flip: float = 0.0
    insert: float = 0.0
    split: float = 0.0
    delay: float = 0.0
    repeat: float = 0.0
    later: float = 0.0
    silence: float = 0.0
    power: float = 0.0
    seconds: float = 1.0


NONE = Faults()


def random_faults(source: random.Random) -> Faults:
    """From a line that is nearly good to one that delivers almost nothing; most kinds of faults are left out each time."""
    worst = source.choice((0.01, 0.05, 0.15, 0.4))
    kinds = ("drop", "flip", "insert", "split", "delay", "repeat", "later", "silence")
    chosen = {kind: source.random() * worst for kind in kinds if source.random() < 0.4}
    return Faults(**chosen, power=source.choice((0.0, 0.0, 0.0, 0.01)), seconds=source.choice((0.01, 0.3, 4.0)))


class FaultyPipe:
    """A `Port` to the monitor. `faults` may be changed at any time. bytes_per_second: in each direction, 0 for no limit."""

    def __init__(self, seed: int, faults: Faults = NONE, bytes_per_second: float = 0.0) -> None:
        self.faults, self.rate = faults, bytes_per_second
        self.power_cycles = 0
        self._source = random.Random(seed)
        self._time = 0.0
        self._order = count()
        self._events: list[tuple[float, int, bool, bytes]] = []
        self._free = {True: 0.0, False: 0.0}
        self._silent_until = 0.0
        self._past: list[bytes] = []
        self._closed = False
        self.monitor = looped_monitor()
        self.monitor.begin(seed)

    def now(self) -> float:
        return self._time

    def send(self, data: bytes) -> None:
        if self._closed:
            raise WireError("the pipe was closed")
        self._pass(data, to_board=True)

    def receive(self, seconds: float) -> bytes:
        if self._closed:
            raise WireError("the pipe was closed")
        until = self._time + seconds
        while self._events and self._events[0][0] <= until:
            self._time, _, to_board, data = heapq.heappop(self._events)
            if not to_board:
                return data
            self._pass(self.monitor.feed(data), to_board=False)
        self._time = max(self._time, until)
        return b""

    def close(self) -> None:
        self._closed = True

    def _pass(self, data: bytes, to_board: bool) -> None:
        size = 64 if self.faults is not NONE else PART if self.rate else len(data)
        for start in range(0, len(data), size or 1):
            piece = data[start : start + size]
            if self.faults is NONE:
                self._deliver(piece, to_board, 0.0)
            else:
                self._damage(piece, to_board)

    def _deliver(self, data: bytes, to_board: bool, delay: float, in_order: bool = True) -> None:
        at = self._time + delay
        if in_order:
            at = max(at, self._free[to_board]) + (len(data) / self.rate if self.rate else 0.0)
            self._free[to_board] = at
        heapq.heappush(self._events, (at, next(self._order), to_board, data))

    def _damage(self, data: bytes, to_board: bool) -> None:
        faults, source = self.faults, self._source
        if source.random() < faults.power:
            self.power_cycles += 1
            self.monitor.power_cycle()
        if source.random() < faults.silence:
            self._silent_until = self._time + source.random() * faults.seconds
        if self._time < self._silent_until:
            return
        piece = bytearray(data)
        if source.random() < faults.drop:
            start = source.randrange(len(piece))
            del piece[start : start + source.choice((1, 2, 64))]
        if piece and source.random() < faults.flip:
            for _ in range(source.choice((1, 1, 2, 5))):
                piece[source.randrange(len(piece))] ^= 1 << source.randrange(8)
        if source.random() < faults.insert:
            at = source.randrange(len(piece) + 1)
            piece[at:at] = source.choice((b"\x7e", b"\x7d", b"\x00", source.randbytes(source.randint(1, 9)), b"Hello\r\n"))
        self._past.append(bytes(piece))
        delay = source.random() * faults.seconds if source.random() < faults.delay else 0.0
        cut = source.randrange(len(piece) + 1) if source.random() < faults.split else 0
        for part in (piece[:cut], piece[cut:]):
            if part:
                self._deliver(bytes(part), to_board, delay)
                delay = source.random() * faults.seconds if cut else delay
        if source.random() < faults.repeat:
            self._deliver(bytes(piece), to_board, 0.0)
        if source.random() < faults.later:  # a run of old bytes comes once more, out of order
            old = b"".join(self._past[-source.randint(1, 12) :])
            self._deliver(old, to_board, source.random() * faults.seconds, in_order=False)
