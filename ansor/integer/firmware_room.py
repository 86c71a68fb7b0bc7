"""Explains why a network's firmware does not fit on a board: how much of each memory it needs, and which part to make smaller."""

from __future__ import annotations

import re
from pathlib import Path

from ansor.codegen.image.board import Board
from ansor.codegen.image.elf import read_image
from ansor.integer.network_code import NetworkCode

NO_ROOM = ("does not fit", "do not fit")
"""Parts of the linker script's messages when a bound is exceeded."""

_BOUND = re.compile(r"^.*ASSERT\(\w+ <= .*$\n", re.MULTILINE)


def without_bounds(script: str) -> str:
    """The linker script without bounds, so that a program that is too large links and can be measured."""
    return _BOUND.sub("", script)


def too_large(code: NetworkCode, board: Board, linked: Path) -> str:
    """For each memory that is too small: what the firmware needs, measured after linking without bounds, and what the board has."""
    image = read_image(linked)
    stored = sum(len(one.content) for one in image.segments)
    kept = [("code and self-test", stored - code.constant_bytes), ("constants", code.constant_bytes)]
    end = image.symbols["ansor_bss_end"] - board.data.start
    own = end - code.arena_bytes - (0 if board.code_is_apart else stored)
    changing = [("arena", code.arena_bytes), ("variables of the start-up code, with gaps", own), ("stack and its guard", board.run.stack + board.core.guard)]
    if not board.code_is_apart:
        return _of_memory(board.data.name, board.data.size, [*kept, *changing])
    room = board.code.end - board.code.start
    said = [
        _of_memory(board.code.name, room, kept) if stored > room else "",
        _of_memory(board.data.name, board.data.size, changing) if end > board.heap_end - board.data.start else "",
    ]
    return "; ".join(filter(None, said)) or "alignment takes up the remaining space"


CURES = {
    "code and self-test": "fewer or smaller layers",
    "constants": "fewer channels",
    "arena": "smaller inputs or fewer channels",
    "stack and its guard": "run.stack",
}


def _of_memory(name: str, size: int, parts: list[tuple[str, int]]) -> str:
    """The sentence about one memory: its size, the bytes needed, each part, and the excess."""
    needs = sum(one for _, one in parts)
    listed = ", ".join(f"{one:,} of {part}" for part, one in parts)
    largest = max((part for part in parts if part[0] in CURES), key=lambda part: part[1])[0]
    over = f"{needs - size:,} bytes too many" if needs > size else "the gaps between them do not fit"
    return f"its {name} has {size:,} bytes, but {needs:,} are needed: {listed}; {over}, and the largest part is {largest} ({CURES[largest]})"
