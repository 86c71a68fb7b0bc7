"""Indices and values as text that a person can read, with parentheses only where they are needed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ansor.ir.columns import Int
from ansor.ir.linear import Linear, Opaque, Quotient, Remainder, Var
from ansor.te.expr import LONGEST, SYMBOLS, Binary, Expr, Not
from ansor.te.fold import fold

LEVELS = {
    "or": 1, "and": 2, "lt": 4, "le": 4, "gt": 4, "ge": 4, "eq": 4, "ne": 4, "bitor": 5, "bitxor": 6, "bitand": 7, "shl": 8, "shr": 8, "add": 9, "sub": 9,
    "mul": 10, "div": 10, "floordiv": 10, "floormod": 10,
}  # fmt: skip
"""How tightly operators bind, as in Python. Operators of comparisons do not follow each other without parentheses."""
NOT, COMPARED, SUM, ATOM = 3, 4, 9, 11


class Text(NamedTuple):
    """The text of a value, and how tightly its outermost operator binds."""

    text: str
    level: int = ATOM

    def within(self, level: int) -> str:
        """The text next to operators that bind like that; in parentheses if it binds less."""
        return self.text if self.level >= level else f"({self.text})"


def value_text(value: Expr) -> str:
    """The value in a line of loops: `max(a[i] + b[j] * 2, 0.0)`."""
    return fold(value, _visit).text


def _visit(node: Expr, parts: tuple[Text, ...]) -> Text:
    parts = tuple(part if len(part.text) <= LONGEST else Text("...") for part in parts)
    if isinstance(node, Not):
        return Text(f"not {parts[0].within(NOT)}", NOT)
    if isinstance(node, Binary) and node.op in SYMBOLS:
        level = LEVELS[node.op]
        right = level if node.op in ("and", "or") else level + 1  # the order of others matters
        return Text(f"{parts[0].within(level + (level == COMPARED))} {SYMBOLS[node.op]} {parts[1].within(right)}", level)
    text = node.text([part.text for part in parts])
    return _bare(text[1:-1]) if text.startswith("(") else Text(text)  # an index as a value


def _bare(text: str) -> Text:
    return Text(text, ATOM if text.isidentifier() or text.isdecimal() else SUM)


def number_text(value: Int) -> str:
    """A number, or its range over a population."""
    if not isinstance(value, np.ndarray):
        return str(value)
    low, high = int(value.min()), int(value.max())
    return str(low) if low == high else f"{low}..{high}"


def linear_text(linear: Linear) -> str:
    """An index: `i_0 * 16 + i_1 + 1`."""
    parts = [f"{_atom_text(atom)} * {number_text(c)}" if not (isinstance(c, int) and c == 1) else _atom_text(atom) for atom, c in linear.terms]
    const = linear.const
    if parts and isinstance(const, int) and const < 0:
        return f"{' + '.join(parts)} - {-const}"
    return " + ".join([*parts, *([number_text(const)] if isinstance(const, np.ndarray) or const != 0 or not parts else [])])


def _atom_text(atom: object) -> str:
    if isinstance(atom, Var):
        return atom.name
    if isinstance(atom, Quotient):
        return f"{_bare(linear_text(atom.value)).within(ATOM)} // {number_text(atom.divisor)}"
    if isinstance(atom, Remainder):
        return f"{_bare(linear_text(atom.value)).within(ATOM)} % {number_text(atom.divisor)}"
    assert isinstance(atom, Opaque)
    return fold(atom.value, _visit).within(ATOM)
