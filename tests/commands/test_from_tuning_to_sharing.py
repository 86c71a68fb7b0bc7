"""One network through the commands in the order in which people give them: tune, look, pack, import elsewhere, time; and the same one as int8."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ansor.cli import main
from ansor.measure.pack import load_pack
from ansor.measure.record import load

pytestmark = [pytest.mark.compiler, pytest.mark.torch]

ONE = ["--target", "cpu -threads=1"]
NETWORK = """
import torch

def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear({inputs}, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8)).eval()

def example_inputs():
    return (torch.ones(4, {inputs}),)

def calibration():
    return [torch.randn(4, {inputs}, generator=torch.Generator().manual_seed(k)) for k in range(4)]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a network and one of another size."""
    for name, inputs in (("net", 16), ("wide", 64)):
        (tmp_path / f"{name}.py").write_text(NETWORK.format(inputs=inputs))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    """What a command prints."""
    found = main(list(words))
    text = capsys.readouterr()
    assert found == status, text.err
    return text.out if status == 0 else text.err


def data(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    """The JSON that a command prints."""
    found: dict[str, object] = json.loads(said(capsys, *words, "--json"))
    return found


def test_a_network_is_tuned_looked_at_and_shared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "tune", "net.py", *ONE, "--trials", "8", "--no-compare")
    trials = len(load("net.jsonl").records)
    assert trials == 8

    assert data(capsys, "coverage", "net.py", "net.jsonl")["shares"] == pytest.approx({"tuned": 1.0, "picked": 0.0, "no reduction": 0.0})
    near = said(capsys, "coverage", "wide.py", "net.jsonl")
    assert re.search(r"^near dense\S*: \d trials? of dense\S* \(another shape\)", near, re.MULTILINE)
    assert "`ansor tune wide.py --target 'cpu -mcpu=native -threads=1' --records net.jsonl` tunes the tasks with picked programs" in near

    assert said(capsys, "report", "net.jsonl", "--of", "net.py", "--peak", "100", "--bandwidth", "10") == "report.html: 2 tasks\n"
    page = (folder / "report.html").read_text()
    assert page.count("<article") == 2 and "Roofline" in page and "void" in page

    made = said(capsys, "pack", "create", "net.jsonl", "--of", "net.py", "--best", "2", "-o", "net.pack")
    programs = len(load_pack("net.pack").records)
    assert 2 <= programs <= 4 and f"\nnet.pack: {programs} programs of 2 tasks for cpu -mcpu=native -threads=1 (" in made
    shown = said(capsys, "pack", "show", "net.pack")
    assert len(re.findall(r"^dense\S* +1 +[12] ", shown, re.MULTILINE)) == 2 and "compiler: " in shown
    tasks = data(capsys, "pack", "show", "net.pack")["tasks"]
    assert isinstance(tasks, list) and sum(len(one["costs"]) for one in tasks) == programs

    assert "name the network or file that it was made for with --of" in said(capsys, "pack", "import", "net.pack", status=1)
    found = data(capsys, "pack", "import", "net.pack", "--of", "net.py", "--measure", "1", "-o", "there.jsonl")
    assert found["written"] == 2 == len(load("there.jsonl").records)
    there = said(capsys, "pack", "import", "net.pack", "--of", "wide.py")
    assert "ignored, of other tasks: " in there and "not in the pack: " in there
    assert data(capsys, "coverage", "net.py", "there.jsonl")["shares"] == pytest.approx({"tuned": 1.0, "picked": 0.0, "no reduction": 0.0})


def test_a_tuned_network_is_timed_beside_the_other_runtimes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["bench", "net.py", *ONE, "--turns", "3"]
    found = data(capsys, *words, "--trials", "4")
    assert found["trials"] == 4 == len(load("net.jsonl").records)
    sides = found["sides"]
    assert isinstance(sides, list) and [one["name"] for one in sides][:2] == ["ours", "eager"]
    assert sides[0]["seconds"] > 0 and isinstance(found["error"], float) and found["error"] < 1e-4
    text = said(capsys, *words)
    assert "PyTorch eager" in text and "dense" in text and "GFLOP/s" in text
    assert "which is an operator; name a network" in said(capsys, "bench", "matmul", status=1)


@pytest.mark.usefixtures("boards")
def test_the_same_network_becomes_int8_here_and_on_a_board(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["net.py", "--int8", "--records", "int8.jsonl", "--output"]
    here = said(capsys, "tune", *words, "here", *ONE, "--trials", "4", "--run")
    assert "self-test: passed, every byte is right" in here and len(load("int8.jsonl").records) == 4
    again = said(capsys, "compile", *words, "again", *ONE)
    assert "`sh again/build.sh test` builds and tests it" in again
    assert (folder / "again" / "net.c").read_bytes() == (folder / "here" / "net.c").read_bytes()
    board = ["--target", "micro -board=mps2-an386 -stack=1024"]
    image = said(capsys, "compile", "net.py", "--int8", *board, "--output", "board")
    assert "firmware.elf" in image and "self-test" not in image
    run = said(capsys, "compile", "net.py", "--int8", *board, "--output", "board", "--run")
    assert "self-test: passed, every byte is right; one run: " in run and (folder / "board" / "firmware.elf").exists()
    away = said(capsys, "compile", "net.py", "--int8", "--target", "arm -mcpu=cortex-a53", "--output", "away")
    assert "`sh away/build.sh` builds it" in away
    assert "--run without --output; name a folder" in said(capsys, "compile", "net.py", "--int8", "--run", status=1)
    assert "which is not an int8 network: add --int8" in said(capsys, "compile", "net.py", "--arena", "64K", status=1)
