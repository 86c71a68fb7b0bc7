"""Boards with an agent: the contract over every transport, failures by their kinds, and connections that break."""

from __future__ import annotations

import shlex
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ansor.codegen.artifact import PROGRAM, Artifact
from ansor.codegen.source import Argument, CSource
from ansor.errors import DeviceError
from ansor.measure.agent import client
from ansor.measure.agent.address import Address, read_address
from ansor.measure.agent.build import built_agent
from ansor.measure.agent.client import AgentClient
from ansor.measure.device import Device, Job, Observation
from ansor.measure.device_kinds import open_device, open_devices
from ansor.measure.device_queue import DeviceQueue
from ansor.measure.devices.agent import AgentDevice, model_of
from ansor.measure.failure import Failure
from ansor.measure.measure_task import MeasureTask
from ansor.measure.timing import Stopping, TimingOptions
from ansor.measure.trial.transport import CLOSED
from ansor.targets.base import parse_target
from ansor.targets.unit import SECONDS
from ansor.testing.device_contract import DeviceContract
from tests.measure.agent.serving import serving
from tests.trial_programs import AARCH64, HERE, Machine, built, kernel

pytestmark = pytest.mark.compiler
FAULTY = Path(__file__).with_name("faulty_agent.py")
N = 100
ADD = "float *a = args[0], *b = args[1], *c = args[2]; for (int i = 0; i < 100; ++i) c[i] = a[i] + b[i];"
ARGUMENTS = tuple(Argument(name, (N,), "float32", "output" if name == "C" else "input") for name in "ABC")
REFERENCE = kernel(ADD.replace("float", "double"), [replace(one, dtype="float64") for one in ARGUMENTS])
TASK = MeasureTask("add", REFERENCE)
QUICK = TimingOptions(repeat=1, min_repeat_ms=0.1, stopping=Stopping(contender_repeats=0), timeout_seconds=5.0)


def stdio(folder: Path, *options: str, before: tuple[str, ...] = ()) -> AgentDevice:
    command = [*before, str(built_agent()), "-store", str(folder / "store"), *options]
    return AgentDevice(read_address(f"agent-stdio:{shlex.join(command)}"))


def emulated(folder: Path, cpu: str = "cortex-a72") -> AgentDevice:
    """An agent for aarch64 under an emulator, which runs programs under another one."""
    emulator = f"qemu-aarch64 -cpu {cpu}"
    command = [*emulator.split(), str(built_agent("aarch64")), "-store", str(folder / "store"), "-with", emulator]
    return AgentDevice(read_address(f"agent-stdio:{shlex.join(command)}"))


class TestStandardInput(DeviceContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self._folder = tmp_path

    def open(self) -> Device:
        return stdio(self._folder)


class TestTcp(DeviceContract):
    @pytest.fixture(autouse=True)
    def server(self, tmp_path: Path) -> Iterator[None]:
        with serving(built_agent(), tmp_path) as (_, port, key):
            self._text = f"agent://127.0.0.1:{port}?key={key}"
            yield

    def open(self) -> Device:
        return open_device(self._text, parse_target("cpu"))


@pytest.mark.usefixtures("emulators")
class TestEmulated(DeviceContract):
    target = "arm -mcpu=cortex-a53"
    trials = 3

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self._folder = tmp_path

    def open(self) -> Device:
        return emulated(self._folder)


@pytest.fixture(scope="module")
def artifact() -> Callable[[CSource, Machine], Artifact]:
    """Builds a program once."""
    made: dict[tuple[CSource, Machine], Artifact] = {}

    def build(source: CSource, machine: Machine = HERE) -> Artifact:
        if (source, machine) not in made:
            made[source, machine] = Artifact(source, built(source, machine), source.entry, PROGRAM)
        return made[source, machine]

    return build


@pytest.fixture
def job(artifact: Callable[[CSource, Machine], Artifact]) -> Callable[..., Job]:
    def make(body: str = ADD, machine: Machine = HERE, task: MeasureTask = TASK) -> Job:
        return Job(task, artifact(kernel(body, ARGUMENTS), machine), artifact(REFERENCE, machine), QUICK)

    return make


@pytest.mark.parametrize(("body", "kind", "said"), [
    (ADD.replace("a[i] + b[i]", "a[i] - b[i]"), "wrong_answer", "100 of 100 elements wrong"),
    (ADD + " *(volatile int *)8 = 1;", "crash", "SIGSEGV"),
    (ADD + " __builtin_trap();", "instruction", "SIGILL"),
    (ADD + " extern void _exit(int); _exit(3);", "exit", "ended with status 3"),
    (ADD + " extern void _exit(int); _exit(0);", "exit", "without an answer"),
    (ADD + " extern int raise(int); raise(9);", "memory", "SIGKILL"),
])  # fmt: skip
def test_failures_have_kinds(tmp_path: Path, job: Callable[..., Job], body: str, kind: str, said: str) -> None:
    device = stdio(tmp_path)
    found = device.run(job(body))
    assert isinstance(found, Failure) and found.kind == kind and said in found.text, found
    assert isinstance(device.run(job()), Observation)
    device.close()


def test_what_an_observation_has(tmp_path: Path, job: Callable[..., Job]) -> None:
    device = stdio(tmp_path)
    seen = device.run(job())
    assert isinstance(seen, Observation) and seen.unit == SECONDS and seen.check
    assert seen.counters["tensor_bytes_sent"] == 0
    assert 1000 < seen.counters["bytes_sent"] < 200_000 and 100 < seen.counters["bytes_received"] < 70_000
    again = device.run(job())
    assert isinstance(again, Observation) and again.counters["bytes_sent"] < 2000, "a program that is there is not sent again"
    assert seen.counters["peak_bytes"] >= 0 and seen.counters["wall_seconds"] > 0
    assert device.model.split()[0] in ("x86_64", "aarch64") and device.alone
    device.close()
    assert not [path for path in (tmp_path / "store").iterdir() if path.name.startswith("kept-")]


def test_real_values_travel_once_when_asked_for(tmp_path: Path, job: Callable[..., Job]) -> None:
    np.save(tmp_path / "a.npy", np.linspace(-3, 5, N, dtype=np.float32))
    device = stdio(tmp_path)
    real = job(task=replace(TASK, files=(("A", str(tmp_path / "a.npy")),)))
    counts = []
    for _ in range(2):
        seen = device.run(real)
        assert isinstance(seen, Observation), seen
        counts.append(seen.counters["tensor_bytes_sent"])
    assert counts == [0, 0], "they went with the reference"
    digests = [path for path in (tmp_path / "store").iterdir() if path.read_bytes() == (tmp_path / "a.npy").read_bytes()]
    digests[0].unlink()
    seen = device.run(real)
    assert isinstance(seen, Observation) and seen.counters["tensor_bytes_sent"] == (tmp_path / "a.npy").stat().st_size
    device.close()


def test_what_is_gone_from_the_board_is_brought_again(tmp_path: Path, job: Callable[..., Job]) -> None:
    device = stdio(tmp_path)
    assert isinstance(device.run(job()), Observation)
    for path in (tmp_path / "store").iterdir():
        path.unlink()
    assert isinstance(device.run(job()), Observation)
    assert isinstance(device.run(job(ADD.replace("100", "99"))), Failure)
    device.close()


@pytest.mark.parametrize(("fault", "kind"), [("cut", "link_lost"), ("truncate", "link_lost"), ("garbage", "link_lost"), ("hang", "link_lost")])
def test_a_link_that_breaks(tmp_path: Path, job: Callable[..., Job], fault: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LATE_SECONDS", -4.0)
    device = stdio(tmp_path, "-wait", "1", before=(sys.executable, str(FAULTY), fault, str(tmp_path / "mark")))
    found = device.run(job())
    assert isinstance(found, Failure) and found.kind == kind, found
    assert isinstance(device.run(job()), Observation)
    device.close()


def test_a_link_that_breaks_before_a_program_was_sent_is_replaced(tmp_path: Path, job: Callable[..., Job]) -> None:
    device = stdio(tmp_path, before=(sys.executable, str(FAULTY), "early", str(tmp_path / "mark")))
    assert isinstance(device.run(job()), Observation)
    device.close()


def test_no_trial_counts_twice(tmp_path: Path, job: Callable[..., Job]) -> None:
    """The queue tries what was lost once more; there is one result."""
    queue = DeviceQueue([stdio(tmp_path, before=(sys.executable, str(FAULTY), "cut", str(tmp_path / "mark")))])
    results = [queue.submit(job(body)) for body in (ADD, ADD + " ")]
    assert all(isinstance(one.result().outcome, Observation) for one in results) and len(results) == 2
    queue.close()


def test_nobody_answers(tmp_path: Path, job: Callable[..., Job]) -> None:
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    key.chmod(0o600)
    for text in (f"agent://127.0.0.1:1?key={key}", "agent-stdio:/nowhere/agent", "agent-stdio:sh -c 'echo it is broken >&2; exit 3'"):
        with pytest.raises(DeviceError, match="no agent answers there") as caught:
            AgentDevice(read_address(text)).run(job())
    assert "status 3: it is broken" in str(caught.value)


def test_closing_ends_what_runs(tmp_path: Path, job: Callable[..., Job]) -> None:
    device = stdio(tmp_path)
    assert isinstance(device.run(job()), Observation)
    sleeping = replace(job(ADD + " while (args[0]) __asm__ volatile(\"\");"), timing=replace(QUICK, timeout_seconds=100.0))
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(device.run(sleeping)))
    thread.start()
    while not any(path.name.startswith("job-") for path in (tmp_path / "store").iterdir()):
        time.sleep(0.01)
    device.close()
    thread.join(20)
    assert isinstance(found[0], Failure) and found[0].kind == "machine"
    assert isinstance(device.run(job()), Observation)
    device.close()


def test_closing_ends_connecting(tmp_path: Path, job: Callable[..., Job]) -> None:
    """Something listens there and says nothing."""
    key = tmp_path / "key"
    key.write_text("0123456789abcdef")
    key.chmod(0o600)
    found: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        device = AgentDevice(read_address(f"agent://127.0.0.1:{server.getsockname()[1]}?key={key}"))
        thread = threading.Thread(target=lambda: found.append(device.run(job())))
        thread.start()
        peer, _ = server.accept()
        device.close()
        thread.join(5)
        peer.close()
    assert found == [CLOSED]


def test_closing_just_as_a_job_begins_ends_it(tmp_path: Path, job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch) -> None:
    """It has asked nothing yet; there is no connection that could be interrupted."""
    device, begun, closed = stdio(tmp_path), threading.Event(), threading.Event()
    found: list[object] = []
    connect = Address.connect

    def later(*given: Any) -> AgentClient:
        begun.set()
        assert closed.wait(60)
        return connect(*given)

    monkeypatch.setattr(Address, "connect", later)
    sleeping = replace(job(ADD + " while (args[0]) __asm__ volatile(\"\");"), timing=replace(QUICK, timeout_seconds=100.0))
    thread = threading.Thread(target=lambda: found.append(device.run(sleeping)))
    thread.start()
    assert begun.wait(60)
    closing = threading.Thread(target=device.close)
    closing.start()
    while not device._one.closing.is_set():
        time.sleep(0.001)
    closed.set()
    thread.join(20)
    closing.join(20)
    assert found == [CLOSED]
    assert isinstance(device.run(job()), Observation)
    device.close()


def test_a_reference_that_cannot_be_made_again_is_told(tmp_path: Path, job: Callable[..., Job]) -> None:
    """It is gone from the board, and fails this time."""
    device = stdio(tmp_path)
    assert isinstance(device.run(job()), Observation)
    made = device._transport._kept
    ((name, known),) = made.items()
    made[name] = replace(known, recipe="none")
    for path in (tmp_path / "store").iterdir():
        if path.name.startswith("kept-"):
            path.unlink()
    found = device.run(job())
    assert isinstance(found, Failure) and found.kind == "machine" and "-space" not in found.text, found
    assert "the reference outputs were gone from the board, and computing them again failed: " in found.text
    device.close()


def test_two_agents_are_two_devices(tmp_path: Path, job: Callable[..., Job], artifact: Callable[[CSource, Machine], Artifact]) -> None:
    """Each program runs once, and two run at the same time: each of a pair waits until it has seen the other's file."""
    texts = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        texts.append(stdio(tmp_path / name).name)
    opened = open_devices(texts, parse_target("cpu"))
    queue = DeviceQueue(opened)
    meet = """static int begun; extern int access(const char *, int), usleep(unsigned), close(int), creat(const char *, unsigned);
    if (!begun++) { close(creat("%s", 384)); for (int i = 0; i < 4000 && access("%s", 0); ++i) usleep(1000); if (access("%s", 0)) __builtin_trap(); }"""
    bodies = []
    for pair in range(3):
        first, second = (str(tmp_path / f"{pair}-{which}") for which in "ab")
        bodies += [meet % (first, second, second) + ADD, meet % (second, first, first) + ADD]
    jobs = [job(body) for body in bodies]
    results = [one.result().outcome for one in [queue.submit(one) for one in jobs]]
    queue.close()
    assert all(isinstance(one, Observation) for one in results), results


@pytest.mark.usefixtures("emulators")
@pytest.mark.parametrize(("cpu", "runs"), [("cortex-a72", False), ("cortex-a76", True)])
def test_an_instruction_that_the_board_lacks(tmp_path: Path, artifact: Callable[[CSource, Machine], Artifact], cpu: str, runs: bool) -> None:
    wide = replace(AARCH64, mcpu="cortex_a76")
    body = '__asm__ volatile("sdot v0.4s, v1.16b, v2.16b" ::: "v0");' + ADD
    device = emulated(tmp_path, cpu)
    found = device.run(Job(TASK, artifact(kernel(body, ARGUMENTS), wide), artifact(REFERENCE, AARCH64), QUICK))
    assert isinstance(found, Observation) if runs else isinstance(found, Failure) and found.kind == "instruction", found
    device.close()


def test_a_program_for_another_machine(tmp_path: Path, artifact: Callable[[CSource, Machine], Artifact], job: Callable[..., Job]) -> None:
    device = stdio(tmp_path)
    found = device.run(replace(job(), artifact=artifact(kernel(ADD, ARGUMENTS), AARCH64)))
    assert isinstance(found, Failure) and found.kind == "load" and "this machine cannot run the program" in found.text
    device.close()


def test_models() -> None:
    assert model_of({"machine": "aarch64", "implementer": "0x41", "part": "0xd08", "board": "Raspberry Pi 4"}) == "aarch64 Raspberry Pi 4 0x41/0xd08"
    assert model_of({"machine": "x86_64", "model": "Some Processor", "with": "qemu"}) == "x86_64 Some Processor with qemu"
