"""Whatever an agent answers, its peer gets an answer or a sentence, and does not wait for long."""

from __future__ import annotations

import os
import random
import threading

import pytest

from ansor.errors import DeviceError
from ansor.measure.agent.channel import Channel
from ansor.measure.agent.client import AgentClient, Limits, Refused, RunEnd
from ansor.measure.agent.wire import BODY_BYTES, LinkLost, Wire

HELLO = b"hello 1 15\nmachine x86_64\n"
RAN = b"ran exit 0 1500000 2500 900 0 5 8\nhellooh!"


class Scripted(Channel):
    """An agent that says what is written down, whatever it is asked."""

    def __init__(self, answers: bytes) -> None:
        reader, self._far_writer = os.pipe()
        self._far_reader, writer = os.pipe()
        self._ends = [reader, writer, self._far_reader]
        super().__init__(reader, writer)
        self._thread = threading.Thread(target=self._speak, args=(answers,), daemon=True)
        self._thread.start()

    def _speak(self, answers: bytes) -> None:
        try:
            os.write(self._far_writer, answers)
        finally:
            os.close(self._far_writer)

    def close(self) -> None:
        if self._ends:
            self._thread.join(10)
            for end in self._ends:
                os.close(end)
            self._ends = []
            super().close()


def client(answers: bytes) -> AgentClient:
    return AgentClient(lambda: Scripted(answers))


def run(peer: AgentClient) -> RunEnd:
    return peer.run("0" * 64, "trial", "-", b"recipe", Limits(1, 1 << 20, 1 << 20))


def test_an_answer_is_read() -> None:
    peer = client(HELLO + RAN)
    assert peer.about == {"machine": "x86_64"}
    assert run(peer) == RunEnd("exit", 0, b"hello", b"oh!", False, 1.5, 0.0025, 900)
    peer.close()


@pytest.mark.parametrize(("said", "error", "sentence"), [
    (b"error busy 4\nwait", Refused, r"the agent refused \(busy\): wait"),
    (b"error protocol 4\nwhat", LinkLost, "could not read the message: what"),
    (b"ran exit 0 1 1 1 0 0\n", LinkLost, "not an agent.s answer"),
    (b"ran other 0 1 1 1 0 0 0\n", LinkLost, "not an agent.s answer"),
    (b"ran exit -1 1 1 1 0 0 0\n", LinkLost, "not an agent.s answer"),
    (b"yes 0\n", LinkLost, "not an agent.s answer"),
    (b"\n", LinkLost, "not an agent.s answer"),
    (b"a" * 300, LinkLost, "not an agent.s answer"),
    (f"ran exit 0 1 1 1 0 0 {BODY_BYTES + 1}\n".encode(), LinkLost, "not an agent.s answer"),
    (b"ran exit 0 1 1 1 0 5 9\nhello", LinkLost, "the connection ended"),
    (b"", LinkLost, "the connection ended"),
])  # fmt: skip
def test_other_answers_are_sentences(said: bytes, error: type[Exception], sentence: str) -> None:
    peer = client(HELLO + said)
    with pytest.raises(error, match=sentence):
        run(peer)
    peer.close()


def test_an_agent_that_says_nothing() -> None:
    reader, far_writer = os.pipe()
    far_reader, writer = os.pipe()
    channel = Channel(reader, writer)
    with pytest.raises(LinkLost, match="no answer in time"):
        Wire(channel).ask(("hello", "1"), seconds=0.05)
    channel.close()
    for end in (reader, far_writer, far_reader, writer):
        os.close(end)


def test_an_agent_of_another_version() -> None:
    with pytest.raises(DeviceError, match="this agent speaks version 2"):
        client(b"error version 27\nthis agent speaks version 2")


def test_broken_answers() -> None:
    chance = random.Random(7)
    for _ in range(1500):
        answers = bytearray(HELLO + RAN)
        for _ in range(chance.choice((1, 1, 2, 4))):
            at = chance.randrange(len(answers) + 1)
            if chance.random() < 0.4:
                answers[at : at + 1] = bytes([chance.randrange(256)])
            elif chance.random() < 0.5:
                del answers[at : at + chance.randrange(1, 20)]
            else:
                answers[at:at] = chance.choice((b" ", b"\n", b"9", b"-1 ", b"error ", chance.randbytes(5)))
        peer = None
        try:
            peer = client(bytes(answers))
            assert run(peer).way in ("exit", "signal", "timeout")
        except (LinkLost, DeviceError) as error:
            assert "\n" not in str(error)
        if peer is not None:
            peer.close()
