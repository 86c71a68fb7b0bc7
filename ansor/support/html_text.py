"""Small pieces of HTML for notebooks: tables, and collapsible texts. Every text is escaped; there are no scripts or style sheets, and nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

LONGEST = 20_000
"""The most characters of a text; a note replaces the rest."""

MOST = 50
"""The most rows of a table; a line below it says how many more there are."""

REPLACED = "\ufffd"


def printable(text: str) -> str:
    """Replace characters that do not belong in a page: control characters, lone surrogates, marks that change the writing direction."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else REPLACED for letter in text)


def escaped(value: object) -> str:
    """A value as HTML text, escaped."""
    return escape(printable(str(value)))


def table(caption: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a caption above it. The notebook's theme decides how cells are aligned."""
    every = list(rows)
    head = "".join(f"<th>{escaped(one)}</th>" for one in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}</td>' for cell in row)}</tr>" for row in every[:MOST])
    more = f"<p>and {len(every) - MOST} more</p>" if len(every) > MOST else ""
    return f"<p>{escaped(caption)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def unfolding(summary: str, text: str) -> str:
    """A collapsible text, hidden at first."""
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}\n... {len(text) - LONGEST} characters more"
    return f"<details><summary>{escaped(summary)}</summary><pre>{escaped(shown)}</pre></details>"
