"""C as a tree: lines, and blocks with a head. Patterns make it; `text` prints it.

    Block("for (long i = 0; i < 4; ++i)", ("y[i] = x[i];",))   ->   for (long i = 0; i < 4; ++i) {
                                                                      y[i] = x[i];
                                                                    }
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Block(NamedTuple):
    """Code in braces after `head`; without a head, a separate scope."""

    head: str
    body: tuple[Code, ...]


Code = str | Block
"""One line (a statement, a declaration, a pragma; "" is an empty line), or a block."""


def block(head: str, body: Iterable[Code]) -> Block:
    """A block from any iterable."""
    return Block(head, tuple(body))


def nested(heads: Sequence[str], body: Iterable[Code]) -> list[Code]:
    """Nested blocks, the first outermost."""
    found = list(body)
    for head in reversed(heads):
        found = [block(head, found)]
    return found


def lines(code: Iterable[Code], indent: str = "") -> list[str]:
    """The lines of C, indented by two spaces per block."""
    found: list[str] = []
    for one in code:
        if isinstance(one, str):
            found.append(indent + one if one else "")
            continue
        found.append(f"{indent}{one.head} {{" if one.head else f"{indent}{{")
        found += lines(one.body, indent + "  ")
        found.append(indent + "}")
    return found
