"""Requests to an agent, as calls with typed results."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil

from ansor.errors import DeviceError
from ansor.measure.agent.channel import Channel
from ansor.measure.agent.wire import VERSION, Answer, LinkLost, Wire

ANSWER_SECONDS = 30.0
LATE_SECONDS = 30.0  # how long after a job's end its answer may come
WAIT_SECONDS = 60.0  # for another peer's job, if the agent does not say how long it waits
SLOWEST_RATE = 16 << 10  # bytes per second, as in `link.h`

RunWay = str
"""How a job ended: exit, signal or timeout."""


class Refused(DeviceError):
    """An agent answered with an error; `kind` is the agent's name for the error."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"the agent refused ({kind}): {text}")
        self.kind = kind
        self.text = text


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one job: seconds of wall time, bytes of memory, bytes of any file it writes."""

    seconds: float
    memory: int
    file_bytes: int


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a job ended. `code`: the exit status or the signal. `cut`: its output was truncated."""

    way: RunWay
    code: int
    output: bytes
    complaint: bytes
    cut: bool
    wall_seconds: float
    cpu_seconds: float
    peak_kb: int


class AgentClient:
    """A connection to an agent, after the greeting. Raises LinkLost if it broke, Refused if the answer is an error, DeviceError for another version."""

    def __init__(self, open_channel: Callable[[], Channel], key: bytes | None = None) -> None:
        self.channel = open_channel()
        try:
            self._wire = Wire(self.channel, key)
            self.about: Mapping[str, str] = self._greeted()
        except BaseException:
            self.channel.close()
            raise

    def has_file(self, digest: str) -> bool:
        """Whether the file with this SHA-256 is stored there."""
        return self._ask(("have", "file", digest)).words == ("yes",)

    def has_kept(self, name: str) -> bool:
        """Whether a job left a file of this name there."""
        return self._ask(("have", "kept", name)).words == ("yes",)

    def put(self, content: bytes) -> str:
        """Store a file and return its digest. Raises Refused for a file larger than the agent accepts: the agent would break the connection midway."""
        largest = self.about.get("largest", "")
        if largest.isascii() and largest.isdecimal() and len(content) > int(largest):
            raise Refused("large", f"a file of {len(content)} bytes is larger than this agent accepts, {largest}; start it with a larger -space")
        digest = hashlib.sha256(content).hexdigest()
        self._ask(("put", digest), content, seconds=ANSWER_SECONDS + len(content) / SLOWEST_RATE)
        return digest

    def run(self, digest: str, mode: str, kept: str, recipe: bytes, limits: Limits) -> RunEnd:
        """Run a stored program with the recipe as its input. mode: reference or trial. kept: a file that a reference leaves and a trial reads, '-' for none."""
        words = ("run", digest, mode, kept, str(ceil(limits.seconds * 1e3)), str(limits.memory), str(limits.file_bytes))
        answer = self._ask(words, recipe, seconds=limits.seconds + self._wait + LATE_SECONDS)
        return _run_end(answer)

    def drop_kept(self, name: str) -> None:
        """Remove what a job left."""
        self._ask(("drop", "kept", name))

    def interrupt(self) -> None:
        """Raise LinkLost in every thread that waits for an answer; may be called from any thread."""
        self.channel.interrupt()

    def close(self) -> None:
        """End the connection and its running job."""
        self.channel.close()

    @property
    def _wait(self) -> float:
        """How many seconds the agent lets a job wait for another peer's."""
        told = self.about.get("wait", "")
        return float(told) if told.isascii() and told.isdecimal() and len(told) < 6 else WAIT_SECONDS

    def _greeted(self) -> Mapping[str, str]:
        answer = self._ask(("hello", VERSION))
        if answer.words != ("hello", VERSION):
            raise LinkLost(f"this is not an agent's answer: {' '.join(answer.words)[:60]!r}")
        lines = (line.partition(" ") for line in answer.body.decode("utf-8", "replace").splitlines())
        found: dict[str, str] = {}
        for name, _, value in lines:
            found.setdefault(name, value.strip())
        return found

    def _ask(self, words: tuple[str, ...], body: bytes = b"", *, seconds: float = ANSWER_SECONDS) -> Answer:
        answer = self._wire.ask(words, body, seconds=seconds)
        if answer.words in (("error", "protocol"), ("error", "late")):
            raise LinkLost(f"the agent could not read the message: {answer.text}")
        if answer.words[:1] == ("error",):
            raise Refused(" ".join(answer.words[1:]), answer.text)
        return answer


def _run_end(answer: Answer) -> RunEnd:
    """Raises LinkLost for anything but an answer to `run`."""
    words = answer.words
    numbers = all(word.isascii() and word.isdecimal() for word in words[2:])
    if len(words) != 8 or words[0] != "ran" or words[1] not in ("exit", "signal", "timeout") or not numbers:
        raise LinkLost(f"this is not an agent's answer: {' '.join(words)[:60]!r}")
    code, wall, cpu, peak, cut, output = map(int, words[2:])
    return RunEnd(words[1], code, answer.body[:output], answer.body[output:], bool(cut), wall / 1e6, cpu / 1e6, peak)
