"""Programs that are started: their ends, and their limits."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from ansor.measure.devices.program_runner import ERR_BYTES, OUT_BYTES, ProgramResult, ProgramRunner


def run(folder: Path, text: str, *words: str, seconds: float = 60.0, recipe: Path | None = None) -> ProgramResult:
    return ProgramRunner().run([sys.executable, "-c", text, *words], folder, seconds, recipe)


def test_what_it_says_and_how_it_ends(tmp_path: Path) -> None:
    (tmp_path / "recipe").write_text("a recipe")
    text = "import os, sys; print(sys.stdin.read(), os.getcwd()); print('oh', file=sys.stderr); sys.exit(3)"
    assert run(tmp_path, text, recipe=tmp_path / "recipe") == ProgramResult(f"a recipe {tmp_path}\n", "oh\n", 3)
    assert run(tmp_path, "import os; os.kill(os.getpid(), 11)").status == -signal.SIGSEGV
    assert run(tmp_path, "import sys; print(sys.argv[1:])", "a b", "'").output == "['a b', \"'\"]\n"
    assert run(tmp_path, "while True: pass", seconds=0.2).status is None


def test_output_has_a_limit(tmp_path: Path) -> None:
    said = run(tmp_path, "import sys; print('a' * 300_000); print('b' * 100_000 + 'end', file=sys.stderr, end='')")
    assert said.cut and said.output == "a" * OUT_BYTES and said.complaint == "b" * (ERR_BYTES - 3) + "end" and said.status == 0
    assert not run(tmp_path, f"print('a' * {OUT_BYTES - 1})").cut and run(tmp_path, f"print('a' * {OUT_BYTES})").cut


@pytest.mark.parametrize("session", [False, True], ids=["its group", "another session"])
def test_what_it_leaves_running_is_not_waited_for(tmp_path: Path, session: bool) -> None:
    text = f"import subprocess; one = subprocess.Popen(['sleep', '300'], start_new_session={session}); print(one.pid)"
    said = run(tmp_path, text, seconds=25.0)
    assert said.status == 0
    if session:
        os.kill(int(said.output), signal.SIGKILL)
    while _runs(int(said.output)):
        time.sleep(0.001)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_closing_ends_what_runs_and_lets_nothing_begin(tmp_path: Path) -> None:
    runner, found = ProgramRunner(), list[ProgramResult]()
    text = f"import pathlib; pathlib.Path({str(tmp_path / 'begun')!r}).touch()\nwhile True: pass"
    thread = threading.Thread(target=lambda: found.append(runner.run([sys.executable, "-c", text], tmp_path, 60)))
    thread.start()
    while not (tmp_path / "begun").exists():
        pass
    runner.closing.set()
    runner.interrupt()
    thread.join(20)
    assert found[0].status is None and runner.run(["touch", "never"], tmp_path, 60) == ProgramResult() and not (tmp_path / "never").exists()
