"""Sends requests to a monitor and receives answers, over a line that may lose, damage, delay and repeat bytes.

Requests are numbered consecutively, and the monitor executes them in that order, each once. A request not answered in time is
sent again. An answer counts if it has the session and number of a waiting request; anything else is stale and dropped.
"""

from __future__ import annotations

import secrets
import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from ansor.measure.wire.framing import Frame, Receiver, encoded
from ansor.measure.wire.port import Port
from ansor.measure.wire.wire import Abilities, WireError

FIRST_WAIT, WAIT_GROWTH, LONGEST_WAIT = 0.3, 1.6, 3.0
GREETING_WAIT = 0.06
"""The first wait for a monitor that may not have started yet."""

ATTEMPTS = 9
"""How often a request is sent before the line counts as broken: 17 seconds of silence."""

BYTES_PER_SECOND = 11_520
"""The default speed assumed when waiting for answers: 115,200 baud. `Link` accepts another."""

VERSION = 1
FACTS = struct.Struct("<IIIIQQBBBB")
TRAP_FACTS = struct.Struct("<BIQ")


class Kind(IntEnum):
    """Kinds of frames. An answer has the kind of its request | 0x80."""

    HELLO, OPEN, READ, WRITE, SUM, EXECUTE, RESET, UNPACK = range(1, 9)
    ANSWER = 0x80
    FAULT, STATE, LOST, STARTED = range(0xC0, 0xC4)


class BoardReset(WireError):
    """The monitor has restarted since the last request: the board's memory is unknown, and its program is gone. The wire works again."""


class Silence(WireError):
    """Nothing answers. The next request looks for the monitor first."""


@dataclass(frozen=True, slots=True)
class Request:
    """A kind and its arguments as bytes. answer_bytes: of memory in the answer."""

    kind: Kind
    body: bytes
    answer_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Fault:
    """The monitor could not carry out a request. code: 1 memory, 2 an unknown request, 3 an address it cannot jump from. cause: the processor's own code."""

    code: int
    cause: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What a monitor reports about itself and its board. window: bytes of frames it can buffer; free: first and last + 1.
    abilities: `chunk` is of one frame. unpacks: it accepts data of `packing`."""

    boot: int
    session: int
    window: int
    free: tuple[int, int]
    board: str
    abilities: Abilities
    unpacks: bool = False


@dataclass(slots=True)
class _Sent:
    number: int
    index: int
    data: bytes


@dataclass(slots=True)
class Counts:
    """Bytes and packets, both ways, since the link was made."""

    bytes: int = 0
    repeated: int = 0


class Link:
    """One monitor behind a port. `greet` finds it; all other methods do so by themselves after the line broke."""

    def __init__(self, port: Port, name: str, bytes_per_second: float = BYTES_PER_SECOND) -> None:
        self.port, self.name = port, name
        self.counts = Counts()
        self._rate = bytes_per_second
        self._receiver = Receiver()
        self._facts: Facts | None = None
        self._session = 0
        self._next = 0  # the number of the next request; 0: no session
        self._echo = False
        self._flight: deque[_Sent] = deque()
        self._rewound = -1  # the last executed number when the flight was last sent again

    @property
    def facts(self) -> Facts:
        """The monitor's last answer."""
        assert self._facts is not None, "greet comes first"
        return self._facts

    @property
    def damaged(self) -> int:
        """Frames that came with a wrong checksum."""
        return self._receiver.damaged

    def replace_port(self, port: Port) -> None:
        """Continue over another port: the board behind it may have restarted."""
        self.port, self._next, self._facts = port, 0, None
        self._receiver = Receiver()

    def greet(self, attempts: int = ATTEMPTS) -> Facts:
        """Find the monitor and begin a session. Raises BoardReset if it has restarted since the last one, and Silence if nothing answers."""
        known, self._next, self._echo = self._facts, 0, False
        for _ in range(attempts):
            facts = self._asked_for_facts(attempts)
            session = facts.session + 1 & 0xFFFFFFFF
            answer = self._ask(Frame(Kind.OPEN, session, 0, struct.pack("<I", facts.boot)), attempts)
            if answer.kind == Kind.ANSWER | Kind.OPEN:
                self._facts, self._session, self._next = facts, session, 1
                if known is not None and known.boot != facts.boot:
                    raise BoardReset(f"{self.name}: the board was reset since it last answered: the contents of its memory are unreliable")
                return facts
        raise Silence(f"{self.name}: the monitor does not start a session; does another program use the same line?")

    def forget(self) -> None:
        """Note that the board is being reset, so that finding a restarted monitor is not an error."""
        self._next, self._facts = 0, None

    def restart(self) -> Facts:
        """Let the monitor reset its board, and find it again. Raises Silence if it does not come back, WireError if it was not reset."""
        self._ready()
        before, frame = self.facts.boot, encoded(self._numbered(Kind.RESET, b""))
        self.forget()
        for attempt in range(ATTEMPTS):
            self._send(frame, again=attempt > 0)
            if self._asked_for_facts(ATTEMPTS).boot != before:
                return self.greet()
        raise WireError(f"{self.name}: the monitor was asked to reset the board and did not")

    def exchange(self, requests: Sequence[Request]) -> list[bytes | Fault]:
        """The answers to these requests, which are executed in order. A write's answer says that it arrived, not that the memory keeps it.

        Raises Silence if the line is broken and BoardReset if the board restarted; it is then unknown which requests were executed.
        """
        self._ready()
        try:
            return self._exchange(requests)
        except WireError:
            self._next = 0
            raise
        finally:
            self._flight.clear()

    def run(self, body: bytes, seconds: float) -> bytes | Fault | None:
        """The answer to a request to execute; None if none comes in time: the program still runs, or the line is broken."""
        self._ready()
        frame = self._numbered(Kind.EXECUTE, body)
        deadline = self.port.now() + seconds + 2 * FIRST_WAIT + len(encoded(frame)) / self._rate
        try:
            answer = self._run(frame, deadline)
        except WireError:
            self._next = 0
            raise
        if answer is None:
            self._next = 0
        return answer

    def _run(self, frame: Frame, deadline: float) -> bytes | Fault | None:
        wait, answered = FIRST_WAIT, Kind.ANSWER | Kind.EXECUTE
        self._send(encoded(frame))
        while (now := self.port.now()) < deadline:
            until = min(deadline, now + wait)
            for got in self._frames(until):
                if got.session != self._session or got.number != frame.number:
                    continue
                if got.kind == Kind.LOST:
                    raise self._was_reset()
                if got.kind in (answered, Kind.FAULT):
                    return _meaning(got)
            if self.port.now() >= until:
                self._send(encoded(frame), again=True)
                wait = min(LONGEST_WAIT, wait * WAIT_GROWTH)
        return None

    # Sessions

    def _ready(self) -> None:
        if not self._next:
            self.greet()

    def _asked_for_facts(self, attempts: int) -> Facts:
        answer = self._ask(Frame(Kind.HELLO, secrets.randbits(32), 0), attempts)
        if len(answer.body) < FACTS.size or answer.body[32] != VERSION:
            raise WireError(f"{self.name}: the monitor there is of a different version than this program; build it again and put it on the board")
        boot, session, chunk, window, first, last, _, bits, abilities, _ = FACTS.unpack_from(answer.body)
        board = answer.body[FACTS.size :].decode("ascii", "replace")
        able = Abilities(bool(abilities & 2), bool(abilities & 1), chunk, bits)
        return Facts(boot, session, window, (first, last), board, able, bool(abilities & 4))

    def _ask(self, frame: Frame, attempts: int) -> Frame:
        """The answer to a request outside a session."""
        wait = GREETING_WAIT
        for attempt in range(attempts + 3):
            self._send(encoded(frame), again=attempt > 0)
            until = self.port.now() + wait
            while True:
                for got in self._frames(until):
                    if got.session == frame.session and got.number == frame.number and got.kind in (Kind.ANSWER | frame.kind, Kind.LOST):
                        return got
                if self.port.now() >= until:
                    break
            wait = min(LONGEST_WAIT, wait * WAIT_GROWTH)
        what = "what is sent comes back: the line is a loop" if self._echo else "no monitor answers"
        raise Silence(f"{self.name}: {what}; is the board on, is the monitor on it, is the speed of the line right?")

    def _was_reset(self) -> BoardReset:
        self.forget()
        return BoardReset(f"{self.name}: the board was reset during a run: the contents of its memory are unreliable")

    # Requests of a session

    def _numbered(self, kind: Kind, body: bytes) -> Frame:
        frame = Frame(kind, self._session, self._next, body)
        self._next += 1
        return frame

    def _exchange(self, requests: Sequence[Request]) -> list[bytes | Fault]:
        todo = deque(range(len(requests)))
        answers: list[bytes | Fault | None] = [None] * len(requests)
        attempts, wait, self._rewound = 1, FIRST_WAIT, -1
        while todo or self._flight:
            self._fill(requests, todo)
            until = self.port.now() + wait + self._travel_seconds(requests)
            came = False
            while not came and self.port.now() < until:
                for got in self._frames(until):
                    came = self._settled(got, requests, todo, answers) or came
            if came:
                attempts, wait = 1, FIRST_WAIT
                continue
            if attempts == ATTEMPTS:
                raise Silence(f"{self.name}: no answer after {attempts} attempts; is the board still on, and the line connected?")
            attempts, wait = attempts + 1, min(LONGEST_WAIT, wait * WAIT_GROWTH)
            self._send_flight_again()
        return [answer if answer is not None else b"" for answer in answers]

    def _fill(self, requests: Sequence[Request], todo: deque[int]) -> None:
        """Send as much as the monitor can buffer."""
        room = self.facts.window - sum(len(sent.data) for sent in self._flight)
        while todo:
            request = requests[todo[0]]
            data = encoded(Frame(request.kind, self._session, self._next, request.body))
            if len(data) > room and self._flight:
                return
            self._flight.append(_Sent(self._next, todo.popleft(), data))
            self._next += 1
            room -= len(data)
            self._send(data)

    def _settled(self, got: Frame, requests: Sequence[Request], todo: deque[int], answers: list[bytes | Fault | None]) -> bool:
        """Process a received frame; returns whether it brought anything new."""
        if got.session != self._session or not self._flight:
            return False
        if got.kind == Kind.LOST:
            raise self._was_reset()
        if got.kind == Kind.STATE:
            return self._caught_up(got.number, requests, todo, answers)
        if not any(sent.number == got.number and got.kind in (Kind.FAULT, Kind.ANSWER | requests[sent.index].kind) for sent in self._flight):
            return False
        self._passed(got.number - 1, requests, todo, answers)
        answers[self._flight.popleft().index] = _meaning(got)
        return True

    def _caught_up(self, last: int, requests: Sequence[Request], todo: deque[int], answers: list[bytes | Fault | None]) -> bool:
        """The monitor reported the last request it executed: it waits for the next one, or an answer was lost."""
        before = len(self._flight)
        self._passed(last, requests, todo, answers)
        if self._flight and self._flight[0].number == last + 1 and self._rewound != last:
            self._rewound = last
            self._send_flight_again()
        return len(self._flight) != before

    def _passed(self, last: int, requests: Sequence[Request], todo: deque[int], answers: list[bytes | Fault | None]) -> None:
        """Requests up to this number were executed and their answers lost: all but writes are sent again, with new numbers."""
        again = []
        while self._flight and self._flight[0].number <= last:
            index = self._flight.popleft().index
            if requests[index].kind == Kind.WRITE:
                answers[index] = b""
            else:
                again.append(index)
                self.counts.repeated += 1
        todo.extendleft(reversed(again))

    def _travel_seconds(self, requests: Sequence[Request]) -> float:
        """How long the frames in flight take on a slow line, both ways."""
        return 2 * sum(len(sent.data) + requests[sent.index].answer_bytes for sent in self._flight) / self._rate

    def _send_flight_again(self) -> None:
        for sent in self._flight:
            self._send(sent.data, again=True)

    # Bytes

    def _send(self, data: bytes, again: bool = False) -> None:
        self.counts.bytes += len(data)
        self.counts.repeated += again
        self.port.send(data)

    def _frames(self, until: float) -> list[Frame]:
        """The monitor's frames in the first bytes that come until then."""
        data = self.port.receive(max(0.0, until - self.port.now()))
        self.counts.bytes += len(data)
        frames = self._receiver.feed(data)
        self._echo = self._echo or any(frame.kind < Kind.ANSWER for frame in frames)
        return [frame for frame in frames if frame.kind >= Kind.ANSWER]


def _meaning(frame: Frame) -> bytes | Fault:
    if frame.kind == Kind.FAULT and len(frame.body) >= 5:
        return Fault(*struct.unpack_from("<BI", frame.body))
    return frame.body
