"""`ansor doctor` with the file of one's own board: a right one counts, and a wrong one is told by the field that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansor.cli import main
from ansor.measure.boards import smoke

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("boards")]

FILE = Path(__file__).parents[2] / "targets" / "boards" / "mps2-an386.toml"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(smoke, "SECONDS", 3.0)
    monkeypatch.chdir(tmp_path)


def doctor(before: str, after: str) -> int:
    """Its status for the file of a shipped board with a change."""
    text = FILE.read_text()
    assert before in text
    Path("mine.toml").write_text(text.replace(before, after, 1))
    return main(["doctor", "--target", "micro -board=mine.toml"])


def test_a_file_that_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor("about", "about") == 0
    assert "passes ran on the board and counted" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("    [0x4000_0000, 1],\n", "", "counter.setup"),
        ("scale = 0.3125", "scale = 1.0", "counter.scale (0.3125 would be right, if that is exact)"),
        ("down = true", "down = false", "check counter.down, counter.bits, counter.register and counter.setup"),
        ("start = 0x2000_0000", "start = 0x3000_0000", "check start of the memory 'ram'"),
        ("ready = 0\n", "ready = 1\n", "a short program printed nothing: "),
        ("scale = 0.3125", "", "counter.scale"),
        ('"mps2-an386", "-icount"', '"no-such-board", "-icount"', "a short program was not started: "),
    ],
)
def test_what_differs_from_the_board(before: str, after: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(before, after) == 1
    found = " ".join("".join(capsys.readouterr()).split())
    assert said in found and "(docs/boards.md)" in found


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("[core]", "[core", "asked for the board of mine.toml, which cannot be read: "),
        ("stack = 0x8000", 'stack = "big"', "'big' is not a whole number"),
        ("registers = [0x4000_1000, 9]", "registers = [0x4000_1000, 0.5]", "is not a whole number"),
        ("floats = true", "floats = 1", "1 is not true or false"),
        ("stack = 0x8000", "stak = 0x8000", "has 'stak'; it may have "),
        ('end = "semihosting"', 'end = ""', "a simulator is started, but nothing ends it; give console.end"),
        ("unit = \"instructions\"\n", "", "lacks 'unit'"),
    ],
)
def test_what_no_file_may_say(before: str, after: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor(before, after) == 1
    assert said in " ".join("".join(capsys.readouterr()).split())
