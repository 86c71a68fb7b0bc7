"""`ansor report`: the page for runs of every kind, and its sentences."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from pathlib import Path

import pytest

from ansor.cli import main
from ansor.commands import report
from ansor.measure.record import record_line
from ansor.report.sections import SUM
from ansor.targets.unit import INSTRUCTIONS
from tests.report.html_pages import Page, drawings
from tests.report.trials import HOSTILE, NAME, TASK, hostile, trial, trials, write

ROOF = ["--peak", "100", "--bandwidth", "10"]
OPERATOR = "from ansor import te\ndef twice(n):\n    a = te.placeholder((n,), name='A')\n    return [a, te.compute((n,), lambda i: a[i] * 2.0, name='B')]\n"


def made(tmp_path: Path, *arguments: str | Path) -> tuple[str, Page]:
    """The page for these arguments, its elements in order."""
    output = tmp_path / "report.html"
    assert main(["report", *map(str, arguments), "-o", str(output)]) == 0
    text = output.read_text()
    page = Page(text)
    assert not page.wrong
    return text, page


def test_a_page_has_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, page = made(tmp_path, write(tmp_path / "a.jsonl", trials()), *ROOF)
    assert capsys.readouterr().out == f"{tmp_path / 'report.html'}: 1 task\n"
    labels = [one.get("aria-label") for one in drawings(text)]
    assert labels == [None, "Roofline", "Tuning curve of task 1"]
    assert page.texts("summary") == ["compile: 2 trials", "timeout: 1 trial", "Loops", "C", "Why it is fast"]
    assert page.texts("pre")[:2] == ["compile: what the tool said", "timeout: what the tool said"]
    assert any("for " in one for one in page.texts("pre")) and any("void" in one for one in page.texts("pre"))
    assert page.texts("td") == [f"1. {NAME}", "100.0 %", "1 us", "8.19 GFLOP/s", "7", "3"]
    assert "100 GFLOP/s (fp32), 10 GB/s from memory" in page.texts("figcaption")[0]
    assert [name for name in page.texts("dt") if "axis" in name], "the tiles of the schedule"


def test_a_page_needs_nothing_beside_it(tmp_path: Path) -> None:
    text, page = made(tmp_path, write(tmp_path / "a.jsonl", trials()), *ROOF)
    assert page.tags.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "form", "base"})
    assert all(value is None or not re.match(r"\s*(https?:|//|javascript:)", value) for _, attrs, _ in page.elements for value in attrs.values())
    assert "url(" not in text and "@import" not in text and "default-src 'none'" in text
    assert 'href="#task-1"' in text and 'id="task-1"' in text


def test_texts_of_a_file_are_never_html(tmp_path: Path) -> None:
    for against in ([], ["--against", str(hostile(tmp_path / "b.jsonl"))]):
        text, page = made(tmp_path, hostile(tmp_path / "a.jsonl"), *ROOF, *against)
        assert page.tags.isdisjoint({"script", "img"}) and not any(name.startswith("on") for _, attrs, _ in page.elements for name in attrs)
        assert drawings(text) and "&lt;script&gt;" in text and "&lt;img" in text
        assert "\x1b" not in text and "\u202e" not in text and "{{ 7 * 7 }}" in text and "49" not in re.findall(r"quoted.*", text)[0]
        shown = next(one for one in page.texts("pre") if "quoted" in one)
        assert shown == "".join(letter if letter.isprintable() else "\ufffd" for letter in HOSTILE)
        assert "Left out: 1 line" in page.texts("p", "bad")[0]


def test_costs_in_another_unit_have_no_roofline(tmp_path: Path) -> None:
    records = [one._replace(unit=INSTRUCTIONS, device="qemu-x86_64", costs=tuple(cost * 1e12 for cost in one.costs)) for one in trials()]
    text, page = made(tmp_path, write(tmp_path / "a.jsonl", records), *ROOF)
    assert [one.get("aria-label") for one in drawings(text)] == [None, "Tuning curve of task 1"]
    assert "1.00 M instructions" in page.texts("td") and "Best so far, instructions" in page.texts("figcaption")
    assert "measured on qemu-x86_64; costs in instructions" in text and "operations per instruction" in text


def test_two_runs_are_compared(tmp_path: Path) -> None:
    other = trial(6e-6)._replace(workload="other")
    now = write(tmp_path / "a.jsonl", [*trials(), other._replace(costs=(3e-6,)), trial(1e-6)._replace(workload="new")], "")
    before = write(tmp_path / "b.jsonl", [trial(2e-6), other, trial(1e-6)._replace(workload="gone")], "")
    text, page = made(tmp_path, now, "--against", before, *ROOF)
    cells = page.texts("td")
    rows = {cells[k]: cells[k + 1 : k + 4] for k in range(6 * 3, len(cells), 4)}
    assert rows["other"] == ["3 us", "6 us", "2.00 times as fast"] and rows[TASK.workload_key] == ["1 us", "2 us", "2.00 times as fast"]
    assert rows["new"] == ["1 us", "-", "in one run only"] and rows["gone"] == ["-", "1 us", "in one run only"]
    assert rows[SUM] == ["4 us", "8 us", "2.00 times as fast"]
    assert len([one for one in drawings(text) for line in one.iter("polyline") if line.get("class") == "line before"]) == 2
    elsewhere = write(tmp_path / "c.jsonl", [trial(2e-6)._replace(target="cpu -threads=9 (x, zig cc 0.17)")])
    assert "so nothing can be compared" in made(tmp_path, now, "--against", elsewhere, *ROOF)[0]


def test_what_is_not_built_in_has_to_be_named(tmp_path: Path) -> None:
    (tmp_path / "ops.py").write_text(OPERATOR)
    from ansor.commands.subject import load_file
    from ansor.tasks.task import SearchTask

    task = SearchTask(load_file(tmp_path / "ops.py").twice, (64,), "cpu -threads=1")
    space = task.spaces[0]
    one = trial(1e-6)._replace(workload=task.workload_key, sketch=json.loads(space.name), row=(0,) * len(space.sizes))
    path = write(tmp_path / "a.jsonl", [one], "twice(64)")
    assert "name it with --of to see its best program" in made(tmp_path, path, *ROOF)[0]
    text, page = made(tmp_path, path, "--of", f"{tmp_path / 'ops.py'}:twice", "--args", "64", *ROOF)
    assert "C" in page.texts("summary") and "Tuning report: twice(64)" in page.texts("h1")


@pytest.mark.torch
def test_a_network_weighs_its_tasks(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\ndef model(): return torch.nn.Sequential(*[torch.nn.Linear(16, 16, bias=False) for _ in range(3)]).eval()\n"
        "def example_inputs(): return (torch.zeros(16, 16),)\n"
    )
    from ansor import api
    from ansor.commands.subject import load_file

    module = load_file(tmp_path / "net.py")
    (task,), (weight,) = api.extract_tasks(module.model(), module.example_inputs(), TASK.target)
    assert weight == 3
    space = task.spaces[0]
    one = trial(1e-6)._replace(workload=task.workload_key, sketch=json.loads(space.name), row=(0,) * len(space.sizes))
    path = write(tmp_path / "a.jsonl", [one, trial(1e-6)], "linear")
    text, page = made(tmp_path, path, "--of", tmp_path / "net.py", *ROOF)
    assert "3 times" in page.texts("span", "uses") and "100.0 %" in page.texts("td")
    assert "Share of 3 us, the sum of best time x number of uses in net" in text
    assert "It is not part of net." in text


def test_a_compiler_that_a_file_names_is_not_started(tmp_path: Path) -> None:
    text, _ = made(tmp_path, write(tmp_path / "a.jsonl", [trial(1e-6)._replace(target="cpu -threads=1 -cc=/bin/false (x, y)")]))
    assert "compilers named in files are not started" in text and "Roofline" not in text


def test_the_roof_is_what_the_machine_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ansor.measure.peak import Peak

    monkeypatch.setattr(report, "machine_peak", lambda target: Peak(77.0, 11.0, 1))
    assert "77 GFLOP/s (fp32), 11 GB/s" in made(tmp_path, write(tmp_path / "a.jsonl", trials()))[0]
    monkeypatch.setattr(report, "machine_peak", lambda target: None)
    assert "GFLOP/s (fp32)" not in made(tmp_path, write(tmp_path / "a.jsonl", trials()))[0]


def test_a_page_refreshes_while_a_run_goes_on(tmp_path: Path) -> None:
    path, output = write(tmp_path / "a.jsonl", [trial(2e-6)]), tmp_path / "r.html"
    seen: list[tuple[float, bool, bool]] = []

    def wait(seconds: float) -> None:
        text = output.read_text()
        seen.append((seconds, 'http-equiv="refresh" content="30"' in text, "<b>1 us</b>" in text))
        if len(seen) == 3:
            raise KeyboardInterrupt
        if len(seen) == 1:
            with path.open("ab") as file:
                file.write(record_line(trial(1e-6)))

    roof = {"peak": 100.0, "bandwidth": 10.0}
    given = Namespace(records=[str(path)], output=str(output), of="", args=(), against=None, refresh=30, target=None, threads=None, cc="", **roof)
    assert report.run_report(given, wait) == 0
    assert seen == [(30, True, False), (30, True, True), (30, True, True)]
    assert 'http-equiv="refresh"' not in output.read_text(), "the last one stays as it is"


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["none.jsonl"], "asked to report on none.jsonl, which is not a file"),
        (["a.jsonl", "-o", "a.jsonl"], "asked to write the report over a.jsonl, which is a record file"),
        (["a.jsonl", "--against", "b.jsonl", "-o", "b.jsonl"], "asked to write the report over b.jsonl"),
        (["a.jsonl", "-o", "none/r.html"], "which is in a folder that does not exist"),
        (["a.jsonl", "-o", "."], "which is a folder"),
        (["a.jsonl", "--peak", "5"], "asked for a roofline with --peak but without --bandwidth"),
        (["a.jsonl", "--bandwidth", "5"], "asked for a roofline with --bandwidth but without --peak"),
        (["a.jsonl", "--args", "5"], "asked for a report with --args"),
        (["a.jsonl", "--of", "matmul", "--args", "8,8,8"], "asked to report on matmul, but a.jsonl has no trials of it"),
        (["a.jsonl", "--of", "nothing"], "asked for 'nothing', which is not a built-in network or operator"),
        (["page.html"], "page.html"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.jsonl", trials())
    (tmp_path / "page.html").write_text("<!doctype html>\n")
    before = (tmp_path / "a.jsonl").read_bytes()
    assert main(["report", *arguments]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("ansor: ") and said.err.count("\n") == 1 and words in said.err and not said.out
    assert (tmp_path / "a.jsonl").read_bytes() == before and not (tmp_path / "report.html").exists()


def test_a_loop_of_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert main(["report", str(tmp_path / "loop"), "-o", str(tmp_path / "r.html")]) == 1
    assert "loop, which is not a file; name a record file" in capsys.readouterr().err
