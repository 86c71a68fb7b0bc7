"""Over TCP: both sides prove that they know the key, and nothing is done for anybody else."""

from __future__ import annotations

import hashlib
import os
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ansor.errors import DeviceError
from ansor.measure.agent.channel import SocketChannel
from ansor.measure.agent.client import AgentClient, Limits
from ansor.measure.agent.wire import LinkLost
from tests.measure.agent.serving import KEY, descriptors, serving

pytestmark = pytest.mark.compiler
LIMITS = Limits(20, 1 << 30, 1 << 20)


@pytest.fixture
def server(agent: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    with serving(agent, tmp_path) as (process, port, _):
        yield process, port


def connect(port: int, key: bytes = KEY) -> AgentClient:
    return AgentClient(lambda: SocketChannel("127.0.0.1", port, 10), key)


def session_ended(process: subprocess.Popen[str]) -> None:
    """Wait until no session is left."""
    for _ in range(500):
        if not Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text():
            return
        time.sleep(0.01)
    pytest.fail("sessions stay")


def test_jobs_run(server: tuple[subprocess.Popen[str], int], fake: bytes) -> None:
    client = connect(server[1])
    digest = client.put(fake)
    assert client.run(digest, "trial", "-", b"say hello", LIMITS).output == b"hello"
    assert client.run(digest, "trial", "-", b"much", LIMITS).cut
    client.close()


def test_an_agent_that_is_started_without_standard_input_and_error(agent: Path, fake: bytes, tmp_path: Path) -> None:
    """Its files would else get their numbers, and those of a job the numbers of its pipes."""
    starter = tmp_path / "starter"
    starter.write_text(f'#!/bin/sh\nexec {agent} "$@" 0<&- 2>&-\n')
    starter.chmod(0o700)
    with serving(starter, tmp_path) as (process, port, _):
        assert {os.readlink(f"/proc/{process.pid}/fd/{number}") for number in (0, 2)} == {"/dev/null"}
        client = connect(port)
        digest = client.put(fake)
        assert client.run(digest, "trial", "-", b"say hello", LIMITS).output == b"hello"
        assert client.run(digest, "trial", "-", b"complain it is broken", LIMITS).complaint == b"it is broken"
        client.close()


@pytest.mark.parametrize("key", [b"", b"another key that nobody knows", KEY[:-1], KEY + b"x", b"k" * 200])
def test_another_key_is_denied(server: tuple[subprocess.Popen[str], int], key: bytes) -> None:
    with pytest.raises(DeviceError, match="the key is not the one of this agent; give both sides the same key file"):
        connect(server[1], key)
    session_ended(server[0])


@pytest.mark.parametrize("length", [16, 63, 64, 65, 4000])
def test_keys_of_all_lengths(agent: Path, tmp_path: Path, length: int) -> None:
    with serving(agent, tmp_path) as (_, _, key):
        pass
    key.write_bytes(bytes(33 + index % 90 for index in range(length)))
    command = [str(agent), "-listen", "0", "-key", str(key), "-store", str(tmp_path / "store")]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    client = connect(int(process.stdout.readline().split()[3]), key.read_bytes())
    assert client.about["machine"]
    client.close()
    process.terminate()
    process.wait()
    process.stdout.close()


def test_an_agent_without_the_key_is_found_out() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    first, second = socket.socketpair()
    second.close()
    first.close()

    class Lying(SocketChannel):
        def receive(self, size: int, deadline: float) -> bytes:
            if not hasattr(self, "lies"):
                self.lies = f"challenge 1 {'ab' * 32} 0\nproof {'cd' * 32} 0\n".encode()
            said, self.lies = self.lies[:size], self.lies[size:]
            return said

    with pytest.raises(DeviceError, match="does not know the key"):
        AgentClient(lambda: Lying("127.0.0.1", listener.getsockname()[1], 10), KEY)
    listener.close()


def test_the_key_does_not_travel_and_nothing_is_said_twice(server: tuple[subprocess.Popen[str], int]) -> None:
    said = []
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", server[1])) as peer:
            said.append(peer.recv(1000))
    assert said[0] != said[1] and all(line.startswith(b"challenge 1 ") and KEY not in line for line in said)


def test_who_did_not_prove_the_key_gets_nothing(server: tuple[subprocess.Popen[str], int], fake: bytes, tmp_path: Path) -> None:
    put = f"put {hashlib.sha256(fake).hexdigest()} {len(fake)}\n".encode() + fake
    for message in (b"hello 1 0\n", put, b"prove x y 0\n", b"\0" * 1000, b"a" * 100_000, f"prove {'0' * 64} {'0' * 64} 5\nhello".encode()):
        with socket.create_connection(("127.0.0.1", server[1])) as peer:
            peer.recv(1000)
            peer.sendall(message)
            answer = b"".join(iter(lambda peer=peer: peer.recv(1000), b""))  # type: ignore[misc]
            assert answer.startswith(b"error protocol ") or answer == b""
    assert os.listdir(tmp_path / "store") == []


def test_what_another_peer_slips_in_ends_the_connection(server: tuple[subprocess.Popen[str], int], fake: bytes) -> None:
    client = connect(server[1])
    deadline = time.monotonic() + 10
    client.channel.send(b"hello 1 0\n" + bytes(32), deadline)
    with pytest.raises(LinkLost, match="the agent could not read the message"):
        client.put(fake)
    client.close()


class Between(SocketChannel):
    """Somebody on the way, who keeps what an agent says, and can change it or say it again."""

    heard = b""
    change = (b"", b"")

    def receive(self, size: int, deadline: float) -> bytes:
        found = super().receive(size, deadline)
        self.heard += found
        return found.replace(*self.change) if self.change[0] else found


@pytest.mark.parametrize("again", [False, True])
def test_an_answer_that_was_changed_or_given_before_is_not_believed(server: tuple[subprocess.Popen[str], int], again: bool) -> None:
    channel = Between("127.0.0.1", server[1], 10)
    client = AgentClient(lambda: channel, KEY)
    channel.heard = b""
    assert not client.has_kept("nothing")
    if again:
        channel._unread += channel.heard
    else:
        channel.change = (b"o", b"p")
    with pytest.raises(LinkLost, match="an answer has a wrong MAC"):
        client.has_kept("nothing")
    client.close()


def test_a_message_that_was_sent_before_is_refused(server: tuple[subprocess.Popen[str], int]) -> None:
    client = connect(server[1])
    sent: list[bytes] = []
    send = client.channel.send

    def noted(message: bytes, deadline: float) -> None:
        sent.append(message)
        send(message, deadline)

    client.channel.send = noted  # type: ignore[method-assign]
    client.has_kept("a")
    send(sent[-1], time.monotonic() + 10)
    assert client.channel.receive(15, time.monotonic() + 10) == b"error protocol "
    client.close()


def test_a_server_outlives_bad_peers(server: tuple[subprocess.Popen[str], int]) -> None:
    process, port = server
    chance = random.Random(5)
    before = descriptors(process.pid)
    for _ in range(200):
        with socket.create_connection(("127.0.0.1", port)) as peer:
            with suppress(ConnectionResetError, BrokenPipeError):
                peer.sendall(chance.randbytes(chance.randrange(300)))
                peer.shutdown(socket.SHUT_WR)
            with suppress(ConnectionResetError):
                while peer.recv(1000):
                    pass
    session_ended(process)
    assert descriptors(process.pid) == before
    resident = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    assert resident < 1000  # pages
    connect(port).close()


def test_too_many_peers_are_told(server: tuple[subprocess.Popen[str], int]) -> None:
    clients = [connect(server[1]) for _ in range(8)]
    with pytest.raises(LinkLost, match="too many peers are connected"):
        connect(server[1])
    for client in clients:
        client.close()
    session_ended(server[0])
    connect(server[1]).close()


@pytest.mark.parametrize(("mode", "content", "said"), [
    (0o644, KEY, "others can read or write the key; run chmod 600 on it"),
    (0o600, b"short", "the key has fewer than 16 bytes"),
    (0o600, b"short\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", "the key has fewer than 16 bytes"),
    (0o600, b"x" * 4096, "the key is longer than 4095 bytes"),
])  # fmt: skip
def test_keys_that_are_refused(agent: Path, tmp_path: Path, mode: int, content: bytes, said: str) -> None:
    key = tmp_path / "key"
    key.write_bytes(content)
    key.chmod(mode)
    ended = subprocess.run([agent, "-listen", "0", "-key", key], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stderr) == (2, f"agent: {said}: {key}\n")


@pytest.mark.parametrize("place", ["99999", "host:1", "1.2.3:1", "1.2.3.4.5:1", "256.1.1.1:1", ":1", "127.0.0.1:"])
def test_places_that_are_none(agent: Path, tmp_path: Path, place: str) -> None:
    key = tmp_path / "key"
    key.write_bytes(KEY)
    key.chmod(0o600)
    ended = subprocess.run([agent, "-listen", place, "-key", key, "-store", tmp_path / "store"], capture_output=True, text=True, timeout=30)
    assert ended.returncode == 2 and ended.stderr.startswith("agent: -listen needs ")
