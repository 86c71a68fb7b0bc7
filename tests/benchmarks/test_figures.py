"""Pages say where and when their figures were measured, and which of them an earlier model had."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import figures
import pytest
from figures import Figures, lines_of, load, measured, sections, with_line, with_table
from provenance import ROOT, Measured, here

from ansor.cost_model.pretrained import package_version

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FIGURE = re.compile(r"^(\d[\d,]*\.\d+|\d{1,3}(,\d{3})+|\d+(\.\d+)? ?%)( ± .*| \(.*\))?$")
"""A number as measurements are: with a fraction, thousands or a percentage."""
ONE = Figures("some", "docs/page.md", "Speed", "python benchmarks/some.py", "1234567", "a machine", "2026-01-01", package_version())


def tables(text: str) -> list[list[list[str]]]:
    """The Markdown tables of a text: rows of cells, without heading and rule."""
    found = re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE)
    return [[[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]] for table in found]


def has_figures(table: list[list[str]]) -> bool:
    """Whether half of the rows have two or more figures, or one after a name."""
    return bool(table) and sum(any(FIGURE.match(cell) for cell in row[1:]) for row in table) * 2 >= len(table)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_of_figures_say_where_they_are_from(page: Path) -> None:
    entries = {one.line for one in load() if ROOT / one.page == page}
    for heading, text in sections(page.read_text()):
        if any(map(has_figures, tables(text))):
            assert entries & set(lines_of(text)), f"{page.name}, {heading}: has a table of figures, and no line of docs/figures.json; see benchmarks/figures.py"


@pytest.mark.parametrize("one", load(), ids=lambda one: one.name)
def test_every_line_is_as_it_should_be(one: Figures) -> None:
    under = dict(sections((ROOT / one.page).read_text()))[one.heading]
    assert one.line in lines_of(under), f"{one.page} does not say under {one.heading!r}: {one.line} - write it with python benchmarks/figures.py --write"


def test_no_page_has_a_line_that_is_no_entry() -> None:
    entries = {one.line for one in load()}
    assert not [line for page in PAGES for line in lines_of(page.read_text()) if line not in entries]
    names = [one.name for one in load()]
    assert len(names) == len(set(names))


def test_commands_are_benchmarks_that_are_there() -> None:
    for one in load():
        script = re.match(r"python ([^-\s]\S*)", one.command)
        assert script is None or (ROOT / script[1]).is_file(), one.command


def test_an_earlier_model_is_told_and_no_model_is_never_older() -> None:
    assert ONE.line == "Figures `some`: measured at commit 1234567, 2026-01-01, on a machine."
    assert replace(ONE, model="none").line == f"{ONE.line[:-1]}, with an earlier model than the one in the package."
    assert replace(ONE, commit="", model="").line == "Figures `some`: measured nowhere yet."
    assert not replace(ONE, model=None).is_older
    assert replace(ONE, before=True).line == "Figures `some`: measured before commit 1234567 (2026-01-01), on a machine."


def test_lines_and_tables_are_written_into_pages() -> None:
    text = "# Speed\n\n<!-- some -->\n<!-- end of some -->\n\nFigures `some`: measured once\nupon a time.\n\nMore.\n"
    found = with_table(with_line(text, ONE), ONE, "| a |\n|---|\n| 1.0 |\n")
    assert found == f"# Speed\n\n<!-- some -->\n\n| a |\n|---|\n| 1.0 |\n\n<!-- end of some -->\n\n{ONE.line}\n\nMore.\n"
    with pytest.raises(LookupError, match="has no line that begins"):
        with_line("# Speed\n", ONE)


def test_what_is_measured_now_has_this_commit_and_model() -> None:
    where = Measured("89abcde", "another", "2026-02-02", "fedcba98")
    assert measured(replace(ONE, before=True), where) == replace(ONE, commit="89abcde", machine="one thread of another", date="2026-02-02", model="fedcba98")
    assert measured(replace(ONE, model=None), where).model is None
    assert here().model == package_version()


def test_changed_code_has_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "here", lambda: Measured("1234567+", "a machine", "2026-01-01", "89abcdef"))
    with pytest.raises(SystemExit, match="commit the changes first"):
        figures.run(ONE)
