"""The process that tunes beside another: what it says, that it ends, and that it never disturbs."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from ansor.networks import background
from ansor.networks.background import Tuners, TuningRequest

SECONDS = 30.0


class Heard:
    """What a request is told."""

    def __init__(self) -> None:
        self.better = 0
        self.lines: list[str] = []

    def request(self, **job: object) -> TuningRequest:
        return TuningRequest(job, self._better, self.lines.append)

    def _better(self) -> None:
        self.better += 1


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(background, "MODULE", "pretended_tuner")
    return tmp_path / "pretended_tuner.py"


def done(tuners: Tuners) -> None:
    """Waits until all requests are done."""
    reached = threading.Event()
    tuners.add(TuningRequest({"last": True}, lambda: None, lambda line: reached.set()))
    assert reached.wait(SECONDS)


LAST = "import json, sys\ndef main(): pass\nif 'last' in json.loads(sys.argv[1]): sys.exit(7)\n"


@pytest.mark.parametrize(("text", "better", "lines"), [
    ("print('better')\nprint('better')\nprint('done')", 2, []),
    ("print('better')\nprint('failed the disk is full')", 1, ["tuning in the background ended: the disk is full"]),
    ("sys.exit(3)", 0, ["tuning in the background ended: its process ended with status 3"]),
])  # fmt: skip
def test_what_is_said(program: Path, text: str, better: int, lines: list[str]) -> None:
    program.write_text(LAST + text)
    heard, tuners = Heard(), Tuners()
    tuners.add(heard.request())
    done(tuners)
    assert heard.better == better and heard.lines == lines


def fails() -> None:
    raise ZeroDivisionError("division by zero")


def test_what_raises_meanwhile_is_a_line(program: Path) -> None:
    program.write_text(LAST + "print('better')\nprint('done')")
    tuners, lines = Tuners(), list[str]()
    tuners.add(TuningRequest({}, fails, lines.append))
    done(tuners)
    assert lines == ["tuning in the background ended: division by zero"]


def test_it_stops_when_it_is_told_and_nothing_begins_afterwards(program: Path) -> None:
    program.write_text("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('better', flush=True)\ntime.sleep(600)")
    began, lines = threading.Event(), list[str]()
    tuners = Tuners()
    tuners.add(TuningRequest({}, began.set, lines.append))
    tuners.add(TuningRequest({}, began.set, lines.append))
    assert began.wait(SECONDS)
    process = tuners.process
    assert process is not None
    background.PATIENCE_SECONDS, before = 0.2, background.PATIENCE_SECONDS
    try:
        tuners.end()
    finally:
        background.PATIENCE_SECONDS = before
    process.wait(SECONDS)
    time.sleep(0.2)
    assert tuners.process is process and not lines
