"""Faults of real agents over TCP, in the middle of a run: killed, started anew, hung, kept busy. The run goes on, and nothing is lost or counted twice."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from ansor.api import tune_tasks
from ansor.measure.agent import client as clients
from ansor.measure.agent import wire
from ansor.measure.agent.client import AgentClient, Limits
from ansor.measure.agent.wire import LinkLost
from ansor.measure.devices import agent as devices
from ansor.measure.record import load
from tests.measure.agent.board import TIMING, TRIALS, Board, Seen, begun, descendants, send, task

pytestmark = pytest.mark.compiler
Boards = Callable[..., Board]


@pytest.fixture
def boards(agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Boards]:
    """Starts the board of a test."""
    monkeypatch.setattr(devices, "PAUSE_SECONDS", 0.05)
    started: list[Board] = []

    def start(*options: str, hold: int = 0) -> Board:
        started.append(Board(agent, tmp_path, *options, hold=hold))
        return started[-1]

    yield start
    for board in started:
        board.kill()


def tune(device: Seen, board: Board, on_progress: Callable[[object], None] = lambda progress: None) -> None:
    """A run, all of whose programs are recorded in the end, each once."""
    records = board.folder / "records.jsonl"
    (state,) = tune_tasks([task()], trials=TRIALS, devices=device, records=records, timing=TIMING, on_progress=on_progress)
    found = load(records).records
    assert state.trials == len(found) == TRIALS and state.best is not None and not state.failures
    assert len({(str(one.sketch), one.row) for one in found}) == TRIALS and all(one.failure is None for one in found)


@contextmanager
def meanwhile(trouble: Callable[[], None]) -> Iterator[None]:
    """While a run goes on."""
    with ThreadPoolExecutor(1) as beside:
        over = beside.submit(trouble)
        yield
        over.result()


@pytest.mark.parametrize("kind", ["reset", "link_lost"])
def test_an_agent_is_killed_in_the_middle_of_a_job_and_another_started(boards: Boards, kind: str) -> None:
    """`reset`: the new one listens when the device looks. `link_lost`: it comes later, with an empty store."""
    board = boards(hold=3)

    def killed() -> None:
        board.wait_held()
        left = board.kill(but_sessions=kind == "reset")
        if kind == "reset":
            board.start()
            send(signal.SIGKILL, left)

    def back() -> None:
        if kind == "link_lost":
            board.lose_files()
            board.start()

    device = Seen(board.address, back)
    with meanwhile(killed):
        tune(device, board)
    device.close()
    assert device.failures == [kind]
    assert begun(board.folder)[-2:] == [1, 2], "the one that was lost began twice, no other did"


def test_an_agent_is_killed_between_two_jobs_and_one_with_an_empty_store_started(boards: Boards) -> None:
    board = boards()
    device = Seen(board.address)

    def restarted(_: object) -> None:
        if len(device.outcomes) == 2 and not (board.folder / "restarted").exists():
            (board.folder / "restarted").touch()
            board.kill()
            board.lose_files()
            board.start()

    tune(device, board, restarted)
    assert len([path for path in board.store.iterdir() if path.name.startswith("file-")]) > 1, "what comes after it, and the reference"
    device.close()
    assert (board.folder / "restarted").exists() and not device.failures and set(begun(board.folder)) == {1}


def test_a_board_hangs_and_goes_on(boards: Boards, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it stands still in the middle of a job, for longer than the device waits."""
    monkeypatch.setattr(clients, "LATE_SECONDS", -16.0)  # 20 s for a job behind -with, and 1 s of waiting
    monkeypatch.setattr(wire, "PROOF_SECONDS", 2.0)
    board = boards("-wait", "1", hold=3)
    stopped: list[int] = []

    def hung() -> None:
        board.wait_held()
        stopped.extend([board.process.pid, *descendants(board.process.pid)])
        send(signal.SIGSTOP, stopped)

    def goes_on() -> None:
        send(signal.SIGCONT, stopped)
        board.wait_idle()

    device = Seen(board.address, goes_on)
    with meanwhile(hung):
        tune(device, board)
    device.close()
    assert device.failures == ["link_lost"] and begun(board.folder)[-2:] == [1, 2]


@pytest.mark.parametrize("after", [0, 2])
def test_another_peer_keeps_the_agent_busy(boards: Boards, fake: bytes, after: int) -> None:
    """Before the reference, or a trial. It leaves when the device was told so."""
    board = boards("-wait", "1")
    other = board.address.connect()
    holding = threading.Thread(target=hold, args=(other, other.put(fake)))

    def held(_: object = None) -> None:
        if len(device.outcomes) == after and not holding.ident:
            holding.start()
            board.wait_busy()

    def left() -> None:
        other.interrupt()
        holding.join()
        other.close()
        board.wait_idle()

    device = Seen(board.address, left)
    if not after:
        held()
    tune(device, board, held)
    device.close()
    assert device.failures == ["queue"] and "another job runs for longer than this one waits" in str(device.outcomes[after])


def hold(other: AgentClient, digest: str) -> None:
    with pytest.raises(LinkLost):
        other.run(digest, "trial", "-", b"sleep 600", Limits(600, 1 << 30, 1 << 20))


def test_an_agent_says_how_long_jobs_wait(boards: Boards, fake: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that whoever asks waits at least as long: `busy` is an answer, a broken link is none."""
    board = boards("-wait", "2")
    monkeypatch.setattr(clients, "LATE_SECONDS", 20.0)
    client = board.address.connect()
    assert client.about["wait"] == "2"
    asked: list[float] = []
    ask = client._wire.ask

    def noted(words: tuple[str, ...], body: bytes = b"", *, seconds: float) -> wire.Answer:
        asked.append(seconds)
        return ask(words, body, seconds=seconds)

    monkeypatch.setattr(client._wire, "ask", noted)
    client.run(client.put(fake), "trial", "-", b"say hello", Limits(3, 1 << 30, 1 << 20))
    assert asked[-1] == 3 + 2 + 20
    client.close()
