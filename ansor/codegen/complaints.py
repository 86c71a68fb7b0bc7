"""Reduces a compiler's output on a failure to its errors: the warnings around them are useless then."""

from __future__ import annotations

import re

_BEGINS = re.compile(r"(?:^|[ )])(fatal error|error|warning|remark): ")


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
