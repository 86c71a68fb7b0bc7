"""Records where and when the figures in README and docs were measured, and whether the model has changed since.

    python benchmarks/figures.py                  # list all figures with their commands; those of an earlier model are marked
    python benchmarks/figures.py --older          # list only those of an earlier model
    python benchmarks/figures.py --run farm       # run the commands of these figures, keep their output in build/figures, write tables and lines into the pages
    python benchmarks/figures.py --write          # write all lines again, after a change of the model

`docs/figures.json` has an entry for each: page and heading, the command, commit, machine, date, and the digest of the model in the package (`null` if no model
is involved, "none" before there was one). The page has a line with these facts under the heading. A test fails if a page has a table of figures with a wrong
line or none: figures of an earlier model have to say so. `before`: the commit of the measurement is not known, but it was before this one. Figures without a
commit have not been measured yet.

If a command has `--markdown FILE`, the page's table is between two comments with the name, and `--run` writes it.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from provenance import ROOT, Measured, here

from ansor.cost_model.pretrained import FILES, package_version

FILE = ROOT / "docs" / "figures.json"
OUTPUTS = ROOT / "build" / "figures"
WIDTH = 160
TABLE = "{table}"
"""Placeholder for the file that a command writes its table to."""


@dataclass(frozen=True)
class Figures:
    """Some figures of a page, measured by one command. model: a digest; None if the package's model is not involved."""

    name: str
    page: str
    heading: str
    command: str
    commit: str
    machine: str
    date: str
    model: str | None
    before: bool = False

    @property
    def is_older(self) -> bool:
        """Whether the figures were measured with a model that is no longer in the package."""
        return bool(self.commit) and self.model is not None and self.model not in map(package_version, FILES)

    @property
    def line(self) -> str:
        """The line that the page has to have."""
        if not self.commit:
            return f"Figures `{self.name}`: measured nowhere yet."
        when = f"before commit {self.commit} ({self.date})" if self.before else f"at commit {self.commit}, {self.date}"
        older = ", with an earlier model than the one in the package" if self.is_older else ""
        return f"Figures `{self.name}`: measured {when}, on {self.machine}{older}."


def load() -> tuple[Figures, ...]:
    """All entries, in the file's order."""
    return tuple(Figures(**one) for one in json.loads(FILE.read_text()))


def save(entries: Sequence[Figures]) -> None:
    """Write the file again."""
    FILE.write_text(json.dumps([asdict(one) for one in entries], indent=1) + "\n")


def sections(text: str) -> Iterator[tuple[str, str]]:
    """The headings of a page, each with the text below it, up to the next heading."""
    parts = re.split(r"^#+ (.*)$", text, flags=re.MULTILINE)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def lines_of(text: str) -> list[str]:
    """The lines about figures in a text, each without line breaks."""
    return [" ".join(paragraph.split()) for paragraph in re.findall(r"^Figures `[^`]*`: measured .*?(?=\n\n|\n*\Z)", text, re.MULTILINE | re.DOTALL)]


def with_line(text: str, figures: Figures) -> str:
    """The page with the right line for these figures. Raises LookupError if the page has none with this name."""
    pattern = re.compile(rf"^Figures `{re.escape(figures.name)}`: measured .*?(?=\n\n|\n*\Z)", re.MULTILINE | re.DOTALL)
    if not pattern.search(text):
        raise LookupError(f"{figures.page} has no line that begins with \"Figures `{figures.name}`: measured\"; write one under the heading {figures.heading}")
    return pattern.sub(lambda _: textwrap.fill(figures.line, WIDTH), text)


def with_table(text: str, figures: Figures, table: str) -> str:
    """The page with this table between the figures' comments; unchanged if it has no such comments."""
    begin, end = f"<!-- {figures.name} -->", f"<!-- end of {figures.name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    return f"{before}{begin}\n\n{table.strip()}\n\n{end}{after}" if found and closed else text


def measured(figures: Figures, where: Measured) -> Figures:
    """The entry of figures that have just been measured."""
    model = None if figures.model is None else where.model
    machine = f"{'one thread' if '--threads 2' not in figures.command else 'two threads'} of {where.machine}"
    return replace(figures, commit=where.commit, machine=machine, date=where.date, model=model, before=False)


def run(figures: Figures) -> Figures:
    """Run the command, keep its output, and write the table and the line into the page. Raises SystemExit if code has changes, or the command fails."""
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    table, where = OUTPUTS / f"{figures.name}.md", here()
    if where.commit.endswith(("+", "unknown")):
        raise SystemExit(f"asked to measure {figures.name} at commit {where.commit}: commit the changes first, so that figures have a commit")
    command = [str(table) if word == TABLE else word for word in shlex.split(figures.command)]
    with (OUTPUTS / f"{figures.name}.txt").open("w") as out:
        status = subprocess.run([sys.executable, *command[1:]], cwd=ROOT, stdout=out, check=False).returncode
    if status not in (0, 1):  # 1: a target was missed
        raise SystemExit(f"{figures.command} ended with status {status}; its output is in {OUTPUTS / f'{figures.name}.txt'}")
    found, page = measured(figures, where), ROOT / figures.page
    text = with_line(page.read_text(), found)
    page.write_text(with_table(text, found, table.read_text()) if TABLE in figures.command else text)
    return found


def shown(entries: Sequence[Figures]) -> Iterator[str]:
    """A paragraph for each entry."""
    for one in entries:
        yield f"{'OLDER ' if one.is_older else ''}{one.name}, {one.page}, {one.heading}\n    {one.line}\n    {one.command}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--older", action="store_true", help="list only figures of an earlier model")
    options.add_argument("--write", action="store_true", help="write all lines again")
    options.add_argument("--run", nargs="+", metavar="NAME", help="measure these figures again")
    given, entries = options.parse_args(), load()
    names = [one.name for one in entries]
    if unknown := [name for name in given.run or () if name not in names]:
        options.error(f"asked for the figures {unknown[0]}, which do not exist; use some of {', '.join(names)}")
    for name in given.run or ():
        entries = tuple(run(one) if one.name == name else one for one in entries)
        save(entries)
    if given.write:
        for one in entries:
            page = ROOT / one.page
            page.write_text(with_line(page.read_text(), one))
    print("\n".join(shown([one for one in entries if one.is_older or not given.older])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
