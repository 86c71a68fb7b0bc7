"""Indices as text that a person can read."""

from __future__ import annotations

import numpy as np

from ansor.ir.columns import Int
from ansor.ir.linear import Linear, Opaque, Quotient, Remainder, Var
from ansor.te.expr import to_text


def number_text(value: Int) -> str:
    """A number, or its range over a population."""
    if not isinstance(value, np.ndarray):
        return str(value)
    low, high = int(value.min()), int(value.max())
    return str(low) if low == high else f"{low}..{high}"


def linear_text(linear: Linear) -> str:
    """An index: `i_0 * 16 + i_1 + 1`."""
    parts = [f"{_atom_text(atom)} * {number_text(c)}" if not (isinstance(c, int) and c == 1) else _atom_text(atom) for atom, c in linear.terms]
    if isinstance(linear.const, np.ndarray) or linear.const != 0 or not parts:
        parts.append(number_text(linear.const))
    return " + ".join(parts)


def _atom_text(atom: object) -> str:
    if isinstance(atom, Var):
        return atom.name
    if isinstance(atom, Quotient):
        return f"({linear_text(atom.value)}) // {number_text(atom.divisor)}"
    if isinstance(atom, Remainder):
        return f"({linear_text(atom.value)}) % {number_text(atom.divisor)}"
    assert isinstance(atom, Opaque)
    return to_text(atom.value)
