"""Puts mistakes into the text of a program: each mutant has one change."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ansor.codegen.source import CSource

_STORE = re.compile(r"^( *(?:\*\([\w ]+\*\)&)?\w+\[[^=\n]*\]) = (.*);$", re.MULTILINE)
_INDEX = re.compile(r"\b(\w+)\[([^\[\]]+)\]")
_LOOP = re.compile(r"(< \d+); \+\+")
_SWAP = re.compile(r"(\(?[\w\[\]]+\)?) ([-/<]) (\(?[\w\[\]]+\)?)")
_BUFFER = re.compile(r"args\[(\d+)\]")
_SUM = re.compile(r" \+ ")
_PRODUCT = re.compile(r" \* ")
_LINE = re.compile(r"^ +[\w\[\]*&() ]+\[.*\] = .*;$", re.MULTILINE)
_FLOAT = re.compile(r"\b0\.0f?\b|\(f32x\d+\)\{\}")


@dataclass(frozen=True)
class Mistake:
    """A kind of mistake: the places where it can be made, and the replacement."""

    name: str
    places: re.Pattern[str]
    change: Callable[[re.Match[str]], str]


def _other(match: re.Match[str]) -> str:
    return f"args[{1 - int(match[1]) if int(match[1]) < 2 else 0}]"


MISTAKES = (
    Mistake("flipped store", _STORE, lambda found: f"{found[1]} = -({found[2]});"),
    Mistake("index shifted up", _INDEX, lambda found: f"{found[1]}[({found[2]}) + 1]"),
    Mistake("index shifted down", _INDEX, lambda found: f"{found[1]}[({found[2]}) - 1]"),
    Mistake("missing last tile", _LOOP, lambda found: f"{found[1]} - 1; ++"),
    Mistake("swapped operands", _SWAP, lambda found: f"{found[3]} {found[2]} {found[1]}"),
    Mistake("swapped buffers", _BUFFER, _other),
    Mistake("difference for sum", _SUM, lambda found: " - "),
    Mistake("sum for product", _PRODUCT, lambda found: " + "),
    Mistake("missing store", _LINE, lambda found: ""),
    Mistake("wrong start", _FLOAT, lambda found: f"({found[0]} + 1)"),
)


def mutants(source: CSource, count: int, rng: random.Random) -> Iterator[tuple[str, CSource]]:
    """At most `count` different mutants of a program, each with the name of its mistake."""
    begin = source.text.index("*pool, void (*body)")  # the typedef before the first function
    begin = source.text.index(";", begin)
    head, body = source.text[:begin], source.text[begin:]
    seen = {body}
    places = [(mistake, match) for mistake in MISTAKES for match in mistake.places.finditer(body)]
    rng.shuffle(places)
    for mistake, match in places:
        changed = body[: match.start()] + mistake.change(match) + body[match.end() :]
        if changed not in seen and len(seen) <= count:
            seen.add(changed)
            yield mistake.name, replace(source, text=head + changed)
