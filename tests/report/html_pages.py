"""The elements of a page, read by Python's own parsers."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """Elements in order, with attributes and text, and those that are closed by another's end tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.open: list[tuple[str, list[str]]] = []
        self.wrong: list[str] = []
        self.feed(text)
        self.close()
        self.wrong += [f"<{tag}> is not closed" for tag, _ in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        words: list[str] = []
        self.elements.append((tag, dict(attrs), words))
        if tag not in VOID:
            self.open.append((tag, words))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1][0] != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        for _, words in self.open:
            words.append(data)

    def texts(self, tag: str, kind: str = "") -> list[str]:
        """The texts of elements with that tag (and class)."""
        return [" ".join("".join(words).split()) for name, attrs, words in self.elements if name == tag and kind in (attrs.get("class") or "")]

    @property
    def tags(self) -> set[str]:
        """The tags of all elements."""
        return {tag for tag, _, _ in self.elements}


def drawings(text: str) -> list[ElementTree.Element]:
    """Every SVG of a page. Raises ParseError if one is not well-formed."""
    return [ElementTree.fromstring(one) for one in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
