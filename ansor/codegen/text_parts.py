"""C text as parts that compile on their own: loop nests, and the entry point that calls them. Programs of one task have most nests in common."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Nest:
    """A loop nest as a function. before: what it needs in front of it; parameters, in parentheses; body, in braces."""

    name: str
    before: str
    parameters: str
    body: str

    def text(self, name: str) -> str:
        """A translation unit that defines it alone, by another name."""
        return f"{self.before}\nvoid {name}{self.parameters} {self.body}\n"


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the text `whole`, which has the same functions. entry: the entry point, as a translation unit that declares the nests."""

    whole: str
    nests: tuple[Nest, ...]
    entry: str
