"""What a compiler says, for people: of a failure its errors alone, as warnings around them are of no use then."""

from __future__ import annotations

import re

_BEGINS = re.compile(r"(?:^|[ )])(fatal error|error|warning|remark): ")


def errors_alone(text: str) -> str:
    """The text without warnings, and without the lines that belong to them; all of it where nothing else is there."""
    kept: list[str] = []
    keeps = True
    for line in text.splitlines():
        begins = _BEGINS.search(line)
        if begins is not None:
            keeps = begins[1].endswith("error")
        if keeps:
            kept.append(line)
    return "\n".join(kept) or text
