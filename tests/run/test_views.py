"""Progress is shown where a person looks on, and nowhere else; lines go to the logger, and where the caller wants them."""

from __future__ import annotations

import logging
import os
import pty
import re
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

import ansor
from ansor.measure.measurer import Measurement
from ansor.run.progress import ProgressView
from ansor.run.reporter import NoView, Reporter
from ansor.run.states import BudgetUse, Progress, RunResults
from ansor.run.views import view_of
from ansor.tasks.task import SearchTask
from ansor.zoo.operators import matmul

ONE = "cpu -threads=1"
PROGRESS = Progress(SearchTask(matmul, (8, 8, 8), ONE), Measurement(costs=(1e-3,)), BudgetUse(3, 3, 8, 1.0), RunResults(1, 0, 1e-3, 1e6))
SCRIPT = """
import sys
import ansor
kernel = ansor.auto_schedule("matmul", (16, 16, 16), "cpu -threads=1", trials=3{more})
print("done", "rich" in sys.modules)
"""


class Noted(NoView):
    """Keeps what it is shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.going_on: list[str] = []
        self.updates = 0

    def say(self, line: str) -> None:
        self.lines.append(line)

    def now(self, what: str) -> None:
        self.going_on.append(what)

    def update(self, progress: Progress) -> None:
        self.updates += 1


def test_nobody_looks_at_a_pipe() -> None:
    assert isinstance(view_of(None), NoView) and isinstance(view_of(False), NoView)
    assert isinstance(view_of(True), ProgressView)
    noted = Noted()
    assert view_of(noted) is noted


def test_somebody_looks_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(view_of(None), ProgressView) and isinstance(view_of(False), NoView)


def test_lines_stay_where_the_caller_wants_them(caplog: pytest.LogCaptureFixture) -> None:
    noted, told = Noted(), list[str]()
    Reporter(noted).say("to the view")
    Reporter(noted, told.append).say("to the caller")
    assert (noted.lines, told) == (["to the view"], ["to the caller"])
    with caplog.at_level(logging.DEBUG, "ansor"):
        Reporter(noted).say("100 % logged")
        Reporter(noted).now("building")
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [("INFO", "100 % logged"), ("DEBUG", "building")]
    assert noted.lines == ["to the view"], "whoever reads the log need not read it twice"


def test_progress_goes_to_both() -> None:
    noted, seen = Noted(), list[Progress]()
    Reporter(noted, on_progress=seen.append).update(PROGRESS)
    assert noted.updates == len(seen) == 1


@pytest.mark.compiler
def test_a_run_says_what_goes_on_from_the_start() -> None:
    noted = Noted()
    ansor.auto_schedule("matmul", (16, 16, 16), ONE, trials=3, progress=noted)
    assert noted.updates == 3
    beginnings = ["starting the C compiler", "deriving the programs of matmul(16, 16, 16)", "choosing, building and measuring the first", "building matmul"]
    assert [any(one.startswith(start) for one in noted.going_on) for start in beginnings] == [True] * 4
    assert re.match(r"matmul\(16, 16, 16\): [\d.]+ .s, 3 trials in ", noted.lines[-1]), "the best latency, too"


@pytest.mark.compiler
def test_without_a_budget_one_line_says_how_to_tune() -> None:
    noted = Noted()
    ansor.auto_schedule("matmul", (16, 16, 16), ONE, progress=noted)
    (line,) = noted.lines
    assert "chosen by the package's model" in line and line.endswith("; give trials= or minutes= to tune")
    noted = Noted()
    ansor.auto_schedule("matmul", (16, 16, 16), ONE, trials=0, progress=noted)
    assert not noted.lines[0].endswith("to tune"), "whoever asks for 0 trials means it"


@pytest.mark.compiler
@pytest.mark.torch
def test_a_network_has_the_same_rule_and_says_what_goes_on() -> None:
    import torch

    noted = Noted()
    ansor.compile(torch.nn.Linear(8, 8).eval(), (torch.ones(2, 8),), ONE, progress=noted)
    assert noted.updates == 0 and any(line.endswith("; give trials= or minutes= to tune") for line in noted.lines)
    assert noted.going_on[0] == "reading the model" and "building 1 kernel" in noted.going_on


@pytest.mark.compiler
def test_a_script_in_a_pipe_is_silent() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT.format(more="")], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("done False\n", "")


def _on_a_terminal(script: str) -> tuple[str, str]:
    """What it writes to a pipe as stdout, and to a terminal as stderr."""
    outside, inside = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm"}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=inside, env=environment) as run:
        os.close(inside)
        shown = b""
        while True:
            try:
                piece = os.read(outside, 65536)
            except OSError:  # nobody writes any more
                break
            if not piece:
                break
            shown += piece
        assert run.stdout is not None
        said = run.stdout.read()
    os.close(outside)
    return said.decode(), shown.decode()


@pytest.mark.compiler
def test_a_terminal_shows_progress_and_a_pipe_beside_it_has_no_control_characters() -> None:
    said, shown = _on_a_terminal(SCRIPT.format(more=", report=print"))
    assert "\x1b" not in said and said.endswith("done True\n") and "3 trials in" in said
    assert "\x1b" in shown and "3/3 trials" in shown and "the first program" in shown
    said, shown = _on_a_terminal(SCRIPT.format(more=", progress=False"))
    assert (said, shown) == ("done False\n", "")


def test_a_notebook_has_one_output_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            assert raw
            shown.append(data)

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Handle:
        assert raw and display_id
        shown.append(data)
        return Handle()

    place = types.ModuleType("IPython.display")
    monkeypatch.setattr(place, "display", display, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", place)
    monkeypatch.setattr("ansor.run.views._in_notebook", lambda: True)
    monkeypatch.setattr("ansor.run.notebook.SECONDS", 0.0)
    with view_of(None) as view:
        view.now("reading <the> model")
        view.update(PROGRESS)
        view.update(replace(PROGRESS, spent=replace(PROGRESS.spent, trials=4)))
        view.say("a line that stays")
    texts = [one["text/plain"] for one in shown]
    assert "reading <the> model" in texts[1] and "reading &lt;the&gt; model" in shown[1]["text/html"]
    assert any("3/8 trials" in text and "best 1 ms" in text for text in texts)
    assert texts[-1] == "a line that stays" and all("\x1b" not in text for text in texts)


def test_importing_does_not_import_rich() -> None:
    script = "import sys, ansor; ansor.auto_schedule, ansor.compile; print('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=Path.cwd()).stdout == "False\n"
