"""Reduces a compiler's output on a failure to its errors: the warnings around them are useless then."""

from __future__ import annotations

import re

from ansor.support.text import clip

LONGEST = 300
"""The most characters of a tool's output in a message of ours."""

_BEGINS = re.compile(r"(?:^|[ )])(fatal error|error|warning|remark|info): ")


def errors_alone(text: str) -> str:
    """The text without warnings and the lines that belong to them; the whole text if nothing else is left."""
    kept: list[str] = []
    keeps = True
    for line in text.splitlines():
        begins = _BEGINS.search(line)
        if begins is not None:
            keeps = begins[1].endswith("error")
        if keeps:
            kept.append(line)
    return "\n".join(kept) or text


def in_brief(text: str) -> str:
    """The errors on one line, for a sentence of ours; a long one is cut."""
    return " ".join(clip(" ".join(errors_alone(text).split()), LONGEST).split())
