"""Runs on one machine take turns, say for whom they wait, and step around one that is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansor.errors import CacheError
from ansor.measure import turns
from ansor.measure.turns import turn
from ansor.support.settings import writable_cache

HOLD = """
import sys, time
from ansor.measure.turns import turn
with turn():
    print("held", flush=True)
    sys.stdin.readline()
print("given back", flush=True)
time.sleep(0.5)
with turn(lambda line: None):
    print("held again", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(turns, "LOOK_SECONDS", 0.1)


@pytest.mark.parametrize(("make", "words"), [(Path.mkdir, "cannot be opened: .*Is a directory"), (os.mkfifo, "is a pipe or a device")])
def test_a_lock_that_is_no_file_is_told(make: Callable[[Path], None], words: str) -> None:
    place = writable_cache() / "measuring.lock"
    make(place)
    with pytest.raises(CacheError, match=f"measurements take turns through the file {place}, .*{words}.*; remove it, or set ANSOR_CACHE to another"), turn():
        pass


@contextmanager
def holder() -> Iterator[subprocess.Popen[str]]:
    """A process that has the turn, until it is sent a line."""
    with subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert line_of(process) == "held"
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def send_line(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_who_comes_second_waits_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 60.0)  # however busy this machine is
    order: list[str] = []
    started = threading.Event()

    def second() -> None:
        started.set()
        with turn(order.append):
            order.append("second")

    with turn():
        other = threading.Thread(target=second)
        other.start()
        started.wait()
        other.join(timeout=0.1)
        order.append("first")
    other.join(timeout=10)
    assert order == ["first", "second"], "so short a wait is not told"


def test_a_long_wait_is_told_once_and_for_whom() -> None:
    said: list[str] = []
    with holder() as process:
        threading.Timer(0.8, send_line, [process]).start()
        with turn(said.append):
            assert line_of(process) == "given back"
    (line,) = said
    assert line.startswith(f"waiting for another run (process {process.pid}, for ") and "two at a time" in line


def test_a_killed_holder_is_no_holder() -> None:
    with holder() as process:
        process.kill()
        process.wait()
        with turn(pytest.fail):
            pass


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="stopped processes are told by /proc")
def test_a_stopped_holder_is_stepped_around_and_joins_in_when_it_goes_on() -> None:
    said: list[str] = []
    with holder() as process:
        os.kill(process.pid, signal.SIGSTOP)
        with turn(said.append):
            assert len(said) == 2 and f"continuing despite another run (process {process.pid}" in said[1] and "is suspended" in said[1]
            os.kill(process.pid, signal.SIGCONT)
            send_line(process)
            assert line_of(process) == "given back"
            time.sleep(1)  # it asks for its next turn, on the new file, and waits
        assert line_of(process) == "held again"
        threading.Timer(0.5, send_line, [process]).start()
        said.clear()
        with turn(said.append):
            assert len(said) == 1 and said[0].startswith("waiting")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="stopped processes are told by /proc")
def test_several_who_wait_for_a_stopped_holder_still_take_turns() -> None:
    inside, most = 0, 0
    count = threading.Lock()

    def measure() -> None:
        nonlocal inside, most
        with turn(lambda line: None):
            with count:
                inside += 1
                most = max(most, inside)
            time.sleep(0.02)
            with count:
                inside -= 1

    with holder() as process:
        os.kill(process.pid, signal.SIGSTOP)
        threads = [threading.Thread(target=measure) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=20)
        assert not any(thread.is_alive() for thread in threads) and most == 1


def test_a_holder_of_another_container_or_that_did_not_sign_is_waited_for() -> None:
    elsewhere = b'{"pid":999999999,"since":0.0,"namespace":"pid:[1]"}'
    for content in (b"", b"rubbish", b"[]", b'{"pid":"x"}', elsewhere):
        said: list[str] = []
        with holder() as process:
            (writable_cache() / "measuring.lock").write_bytes(content)
            threading.Timer(0.7, send_line, [process]).start()
            with turn(said.append):
                pass
        assert len(said) == 1 and said[0].startswith("waiting for another run")


def test_waiting_can_be_interrupted() -> None:
    def stop(line: str) -> None:
        raise KeyboardInterrupt

    with holder() as process:
        with pytest.raises(KeyboardInterrupt), turn(stop):
            pytest.fail("it has no turn")
        send_line(process)
        assert line_of(process) == "given back" and line_of(process) == "held again", "who left the queue does not hold it up"
