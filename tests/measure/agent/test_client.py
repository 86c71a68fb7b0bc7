"""The agent on standard input and output, as its client sees it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from ansor.measure.agent.channel import ProcessChannel
from ansor.measure.agent.client import AgentClient, Limits, Refused, RunEnd
from ansor.measure.agent.wire import LinkLost

pytestmark = pytest.mark.compiler
LIMITS = Limits(20, 1 << 30, 1 << 20)
PTRACE_SEIZE, WALL = 0x4206, 0x40000000


def run(client: AgentClient, program: bytes, recipe: str, *, mode: str = "trial", kept: str = "-", limits: Limits = LIMITS) -> RunEnd:
    return client.run(client.put(program), mode, kept, recipe.encode(), limits)


def gone(process: int) -> bool:
    """Whether a process ended; it may still be waited for by somebody."""
    for _ in range(200):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


def test_it_says_what_machine_it_is_on(client: AgentClient) -> None:
    assert client.about["machine"] == os.uname().machine
    assert int(client.about["processors"]) >= 1 and int(client.about["memory"]) > 1 << 20
    assert "with" not in client.about


def test_files_are_stored_by_digest(client: AgentClient, fake: bytes, tmp_path: Path) -> None:
    digest = hashlib.sha256(fake).hexdigest()
    assert not client.has_file(digest)
    assert client.put(fake) == digest and client.has_file(digest)
    assert client.put(b"") == hashlib.sha256(b"").hexdigest()
    (tmp_path / "store" / f"file-{digest}").write_bytes(fake[:-1])
    assert not client.has_file(digest), "a damaged file is not there"


@pytest.mark.parametrize("size", [1, 55, 56, 63, 64, 65, 119, 120, 4095, 4096, 4097, 1_000_000])
def test_digests_of_all_lengths(client: AgentClient, size: int) -> None:
    client.put(bytes(index * 7 % 251 for index in range(size)))


def test_how_programs_end(client: AgentClient, fake: bytes) -> None:
    assert run(client, fake, "say hello").output == b"hello"
    assert (run(client, fake, "exit 3").way, run(client, fake, "exit 3").code) == ("exit", 3)
    assert (run(client, fake, f"raise {int(signal.SIGSEGV)}").way, run(client, fake, "raise 11").code) == ("signal", 11)
    complaint = run(client, fake, "complain it is broken")
    assert (complaint.code, complaint.complaint) == (3, b"it is broken")


def test_a_program_that_hangs_is_ended(client: AgentClient, fake: bytes) -> None:
    ended = run(client, fake, "sleep 60", limits=Limits(0.5, 1 << 30, 1 << 20))
    assert ended.way == "timeout" and ended.wall_seconds < 30


def test_output_is_cut(client: AgentClient, fake: bytes) -> None:
    ended = run(client, fake, "much")
    assert ended.cut and len(ended.output) == 64 << 10


def test_limits_hold(client: AgentClient, fake: bytes) -> None:
    found = run(client, fake, "limits").output.split()
    assert [int(word) for word in (found[0], found[2], found[3], found[4])] == [1 << 30, 1 << 20, 64, 0]
    assert found[5:] == [b"open=3", b"group=1", b"folder=1"]
    assert run(client, fake, "write 900000").way == "exit"
    too_much = run(client, fake, "write 3000000")
    assert (too_much.way, too_much.code) == ("signal", int(signal.SIGXFSZ))


def test_what_a_reference_leaves_is_kept(client: AgentClient, fake: bytes, tmp_path: Path) -> None:
    assert not client.has_kept("ours")
    assert run(client, fake, "echo it", mode="reference", kept="ours").output == b"reference out 7\n"
    assert client.has_kept("ours")
    assert run(client, fake, "kept", kept="ours").output == b"kept=echo it\n"
    client.drop_kept("ours")
    with pytest.raises(Refused, match="missing") as caught:
        run(client, fake, "kept", kept="ours")
    assert caught.value.kind == "missing"
    assert sorted(name[:5] for name in os.listdir(tmp_path / "store")) == ["file-", "lock"], "folders of jobs are removed"


def test_a_reference_that_fails_keeps_nothing(client: AgentClient, fake: bytes) -> None:
    assert run(client, fake, "exit 1", mode="reference", kept="ours").code == 1
    assert not client.has_kept("ours")


def test_a_program_that_is_not_there(client: AgentClient) -> None:
    with pytest.raises(Refused, match="the program is not stored here"):
        client.run("0" * 64, "trial", "-", b"", LIMITS)


def test_what_is_no_program_of_this_machine(client: AgentClient) -> None:
    with pytest.raises(Refused) as caught:
        run(client, b"\x7fELF of another machine", "")
    assert caught.value.kind == "start"


@pytest.mark.parametrize("way", ["stray", "daemon"])
def test_nothing_that_a_program_starts_outlives_it(client: AgentClient, fake: bytes, tmp_path: Path, way: str) -> None:
    run(client, fake, f"{way} {tmp_path / 'process'}")
    assert gone(int((tmp_path / "process").read_text()))


def test_folders_that_programs_close_are_removed(client: AgentClient, fake: bytes, tmp_path: Path) -> None:
    assert run(client, fake, "litter").code == 0
    assert not [name for name in os.listdir(tmp_path / "store") if name.startswith("job-")]


@pytest.mark.parametrize("depth", [1, 31, 32, 33, 34, 300])
def test_folders_are_removed_however_deep_they_are(client: AgentClient, fake: bytes, tmp_path: Path, depth: int) -> None:
    assert run(client, fake, f"dig {depth}").code == 0
    assert not [name for name in os.listdir(tmp_path / "store") if name.startswith("job-")]
    assert run(client, fake, "say next").output == b"next"


def test_a_file_is_read_again_only_when_it_may_have_changed(client: AgentClient, tmp_path: Path) -> None:
    content = os.urandom(1 << 20)
    digest = client.put(content)
    (session,) = map(int, Path(f"/proc/{channel_of(client).process.pid}/task/{channel_of(client).process.pid}/children").read_text().split())

    def read_bytes() -> int:
        before = _read_so_far(session)
        assert client.has_file(digest)
        return _read_so_far(session) - before

    assert read_bytes() >= len(content) and read_bytes() < 1000
    stored = tmp_path / "store" / f"file-{digest}"
    stored.write_bytes(content)
    assert read_bytes() >= len(content)
    stored.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert not client.has_file(digest)


def channel_of(client: AgentClient) -> ProcessChannel:
    assert isinstance(client.channel, ProcessChannel)
    return client.channel


def _read_so_far(process: int) -> int:
    return int(Path(f"/proc/{process}/io").read_text().split()[1])


def test_what_cannot_end_is_not_waited_for(client: AgentClient, fake: bytes, tmp_path: Path) -> None:
    """As a process that a driver holds: here one that is traced, and that its tracer does not wait for."""
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    place, seen = tmp_path / "process", list[RunEnd]()
    running = threading.Thread(target=lambda: seen.append(run(client, fake, f"held {place}")))
    running.start()
    while not place.exists() or not place.read_text().endswith("\n"):
        time.sleep(0.001)
    held = int(place.read_text())
    assert library.ptrace(PTRACE_SEIZE, held, None, None) == 0, os.strerror(ctypes.get_errno())
    try:
        (tmp_path / "process.go").touch()
        running.join(20)
        assert seen and seen[0].way == "exit"
    finally:
        os.waitpid(held, WALL)


@pytest.mark.parametrize("letters", [47, 48, 150])
def test_files_are_where_the_environment_says(agent: Path, fake: bytes, tmp_path: Path, letters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / ("t" * letters)
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    client = AgentClient(lambda: ProcessChannel([str(agent)]))
    assert run(client, fake, "say hello").output == b"hello"
    client.close()
    assert [path.name for path in place.iterdir()] == [f"ansor-agent-{os.geteuid()}"]


def test_a_place_that_is_too_long_is_refused(agent: Path) -> None:
    ended = subprocess.run([agent], env={"TMPDIR": "/" + "t" * 1000}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ended.returncode == 2 and "agent: TMPDIR is too long; name a folder with -store: /ttt" in ended.stderr


def test_a_job_ends_when_the_peer_is_gone(client: AgentClient, fake: bytes, tmp_path: Path) -> None:
    sleeping = threading.Thread(target=lambda: pytest.raises(LinkLost, run, client, fake, "sleep 60"))
    sleeping.start()
    store = tmp_path / "store"
    while not store.exists() or not any(name.startswith("job-") for name in os.listdir(store)):
        time.sleep(0.01)
    client.interrupt()
    sleeping.join(10)
    client.close()
    assert not any(name.startswith("job-") for name in os.listdir(store))


def test_an_agent_that_is_ended_leaves_nothing(agent: Path, fake: bytes, tmp_path: Path) -> None:
    channel = ProcessChannel([str(agent), "-store", str(tmp_path / "store")])
    client = AgentClient(lambda: channel)
    sleeping = threading.Thread(target=lambda: pytest.raises(LinkLost, run, client, fake, "sleep 60"))
    sleeping.start()
    while not (tmp_path / "store").exists() or not any(name.startswith("job-") for name in os.listdir(tmp_path / "store")):
        time.sleep(0.01)
    channel.process.terminate()
    sleeping.join(10)
    assert not sleeping.is_alive()
    client.close()
    assert not any(name.startswith("job-") for name in os.listdir(tmp_path / "store"))


def test_one_job_at_a_time(client: AgentClient, agent: Path, fake: bytes, tmp_path: Path) -> None:
    second = AgentClient(lambda: ProcessChannel([str(agent), "-store", str(tmp_path / "store"), "-wait", "1"]))
    sleeping = threading.Thread(target=run, args=(client, fake, "sleep 3"))
    sleeping.start()
    while not any(name.startswith("job-") for name in os.listdir(tmp_path / "store")):
        time.sleep(0.01)
    with pytest.raises(Refused) as caught:
        run(second, fake, "say now")
    assert caught.value.kind == "busy"
    sleeping.join()
    assert run(second, fake, "say now").output == b"now"
    second.close()


def test_the_space_is_limited(agent: Path, tmp_path: Path) -> None:
    client = AgentClient(lambda: ProcessChannel([str(agent), "-store", str(tmp_path / "store"), "-space", "1"]))
    assert client.about["largest"] == str(1 << 18)
    digests = [client.put(bytes([number]) * 100_000) for number in range(40)]
    assert sum(path.stat().st_size for path in (tmp_path / "store").iterdir()) <= 1 << 20
    assert client.has_file(digests[-1]) and not client.has_file(digests[0])
    with pytest.raises(Refused, match=r"\(large\): a file of 300000 bytes is larger than this agent accepts, 262144; start it with a larger -space"):
        client.put(bytes(300_000))
    assert client.has_file(digests[-1])  # the connection is as it was
    client.about = {}
    with pytest.raises((Refused, LinkLost)):
        client.put(bytes(300_000))
    client.close()


def test_no_descriptor_is_left_open(client: AgentClient, fake: bytes) -> None:
    session = Path(f"/proc/{client.channel.process.pid}/task/{client.channel.process.pid}/children").read_text().split()[0]  # type: ignore[attr-defined]
    run(client, fake, "echo")
    before = sorted(os.listdir(f"/proc/{session}/fd"))
    for number in range(30):
        run(client, fake, "exit 1", mode="reference" if number % 2 else "trial", kept=f"kept-{number}" if number % 2 else "-")
    deadline = time.monotonic() + 10  # the agent closes what a job had a moment after it answered
    while not set(os.listdir(f"/proc/{session}/fd")) <= set(before) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert set(os.listdir(f"/proc/{session}/fd")) <= set(before)


def test_a_command_in_front_of_jobs(agent: Path, fake: bytes, tmp_path: Path) -> None:
    script = tmp_path / "front"
    script.write_text('#!/bin/sh\necho "in front: $1"\nshift\nexec "$@"\n')
    script.chmod(0o700)
    client = AgentClient(lambda: ProcessChannel([str(agent), "-store", str(tmp_path / "store"), "-with", f"{script}  word"]))
    assert run(client, fake, "echo").output == b"in front: word\ntrial - 4\n"
    assert client.about["with"] == f"{script} word"
    client.close()


@pytest.mark.parametrize(("arguments", "said"), [
    (["-store"], "an option needs a value: -store"),
    (["-what", "1"], "there is no such option; agent -help lists them: -what"),
    (["-space", "x"], "-space: needs a whole number above 0"),
    (["-listen", "9190"], "-listen needs -key FILE"),
    (["-key", "/dev/null"], "-key is for -listen; standard input needs none"),
    (["-with", " "], "-with needs a command"),
    (["-store", "/proc/nowhere"], "the folder for files cannot be made: /proc/nowhere"),
])  # fmt: skip
def test_options_that_are_refused(agent: Path, arguments: list[str], said: str) -> None:
    ended = subprocess.run([agent, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stderr) == (2, f"agent: {said}\n")


def test_a_folder_that_others_may_use_is_refused(agent: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(LinkLost, match="others may use the folder for files; take that right away with chmod 700"):
        AgentClient(lambda: ProcessChannel([str(agent), "-store", str(tmp_path)]))
