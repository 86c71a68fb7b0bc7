"""Messages of the agent's protocol, as `link.h` writes and reads them.

    WORD ... SIZE\\n   SIZE bytes   [32 bytes: the MAC, if the connection was authenticated by a key]
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass

from ansor.errors import DeviceError, MeasureError
from ansor.measure.agent.channel import Channel

VERSION = "1"
HEADER_BYTES = 256
BODY_BYTES = 128 << 10  # of an answer
DIGEST_BYTES = 32
PROOF_SECONDS = 10.0


class LinkLost(MeasureError):
    """The connection to an agent broke, timed out, or delivered something other than an answer. It cannot be used again."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An agent's answer: the words of the first line without the size, and the bytes after it."""

    words: tuple[str, ...]
    body: bytes

    @property
    def text(self) -> str:
        """The body of an error, as text."""
        return " ".join(self.body[:400].decode("utf-8", "replace").split())


class Wire:
    """One connection, one request at a time. With a `key`, both sides prove that they have it before the first one."""

    def __init__(self, channel: Channel, key: bytes | None = None) -> None:
        self.channel = channel
        self._seal: bytes | None = None
        self._asked = self._answered = 0
        if key is not None:
            self._prove(key)

    def ask(self, words: tuple[str, ...], body: bytes = b"", *, seconds: float) -> Answer:
        """Send a message and wait for its answer, `seconds` at most. Raises LinkLost."""
        line = " ".join([*words, str(len(body))]) + "\n"
        if len(line) > HEADER_BYTES:
            raise ValueError(f"Wire.ask: the first line has {len(line)} bytes, {HEADER_BYTES} at most: {line[:80]}")
        deadline = time.monotonic() + seconds
        message = line.encode() + body
        if self._seal is not None:
            message += _sealed(self._seal, b"C", self._asked, message)
        self._asked += 1
        self._send(message, deadline)
        return self._receive(deadline)

    def _receive(self, deadline: float) -> Answer:
        line = self._line(deadline)
        words, size = _split(line)
        body = self._take(size, deadline)
        if self._seal is not None:
            seal = self._take(DIGEST_BYTES, deadline)
            if not hmac.compare_digest(seal, _sealed(self._seal, b"A", self._answered, line + body)):
                raise LinkLost("an answer has a wrong MAC: somebody else wrote to the connection")
        self._answered += 1
        return Answer(words, body)

    def _prove(self, key: bytes) -> None:
        """Authenticate both sides by the key, which is never sent. Raises DeviceError if the keys differ, and LinkLost."""
        deadline = time.monotonic() + PROOF_SECONDS
        challenge = self._receive(deadline)
        if challenge.words[:1] == ("error",):
            raise LinkLost(challenge.text)
        if challenge.words[:2] != ("challenge", VERSION) or len(challenge.words) != 3:
            raise DeviceError(f"asked an agent to prove its key; found {' '.join(challenge.words)[:80]!r}: is it the right port, and an agent of this version?")
        ours = secrets.token_bytes(DIGEST_BYTES)
        nonces = _digest(challenge.words[2]) + ours
        proof = hmac.digest(key, b"ansor agent 1 client" + nonces, "sha256")
        self._send(f"prove {ours.hex()} {proof.hex()} 0\n".encode(), deadline)
        answer = self._receive(deadline)
        if answer.words[:1] == ("error",):
            raise DeviceError(f"the agent refused: {answer.text}; give both sides the same key file")
        wanted = hmac.digest(key, b"ansor agent 1 server" + nonces, "sha256")
        if answer.words[:1] != ("proof",) or len(answer.words) != 2 or not hmac.compare_digest(_digest(answer.words[1]), wanted):
            raise DeviceError("the other side does not know the key: it is not one of our agents, so nothing is sent to it")
        self._seal, self._asked, self._answered = hmac.digest(key, b"ansor agent 1 sealed" + nonces, "sha256"), 0, 0

    def _send(self, message: bytes, deadline: float) -> None:
        try:
            self.channel.send(message, deadline)
        except (OSError, EOFError) as error:
            raise LinkLost(_why(error)) from error

    def _take(self, size: int, deadline: float) -> bytes:
        try:
            return self.channel.receive(size, deadline)
        except (OSError, EOFError) as error:
            raise LinkLost(_why(error)) from error

    def _line(self, deadline: float) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            if len(line) == HEADER_BYTES:
                raise LinkLost(f"this is not an agent's answer: {line[:60]!r}")
            line += self._take(1, deadline)
        return line


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__


def _split(line: bytes) -> tuple[tuple[str, ...], int]:
    """Split the first line of an answer into its words and the size. Raises LinkLost if it is not one."""
    words = line[:-1].decode("ascii", "replace").split(" ")
    if len(words) < 2 or not words[-1].isascii() or not words[-1].isdecimal() or int(words[-1]) > BODY_BYTES:
        raise LinkLost(f"this is not an agent's answer: {line[:60]!r}")
    return tuple(words[:-1]), int(words[-1])


def _digest(word: str) -> bytes:
    try:
        found = bytes.fromhex(word)
    except ValueError:
        found = b""
    if len(found) != DIGEST_BYTES:
        raise LinkLost("this is not an agent's answer: a digest is missing")
    return found


def _sealed(key: bytes, sender: bytes, number: int, message: bytes) -> bytes:
    return hmac.new(key, sender + number.to_bytes(8, "big") + message, hashlib.sha256).digest()
