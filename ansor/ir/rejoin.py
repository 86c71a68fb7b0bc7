"""Loops fused over neighbouring dimensions, as one dimension again: a quotient and a remainder that add up to what was divided."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from ansor.ir.linear import Atom, Linear, Quotient, Remainder, Var, is_opaque, of
from ansor.ir.simplify import simplified_index


def rejoined(linear: Linear) -> Linear:
    """The same sum with fewer divisions. Every extent and coefficient has to be an int.

    (f / d) * c * d + (f % d) * c              ->  f * c
    ((f / d) % e) * c * d + (f % d) * c        ->  (f % (d * e)) * c
    (f / 8) * 160 + (f * 20 + g) % 160         ->  f * 20 + g, if g < 20, as (f * 20 + g) / 160 is f / 8
    """
    while (found := _joined(linear)) is not None:
        linear = found
    return linear


def _joined(linear: Linear) -> Linear | None:
    """One remainder put together with what was left of the division; None if there is none."""
    for low, coefficient in linear.terms:
        if not isinstance(low, Remainder) or is_opaque(low) or int(coefficient) == 0:
            continue
        for high, whole in _divided(low, int(coefficient), linear):
            rest = _without(linear, low, high * (int(coefficient) * int(low.divisor)))
            if rest is not None:
                return simplified_index(rest + whole * coefficient)
    return None


def _divided(low: Remainder, coefficient: int, linear: Linear) -> Iterator[tuple[Linear, Linear]]:
    """What may be left besides a remainder, as written and simplified, and what both add up to: v / m and v, or (v / m) % e and v % (m * e)."""
    value, divisor = low.value, int(low.divisor)
    quotient = of(Quotient(value, divisor))
    yield quotient, value
    yield simplified_index(quotient), value
    for other, scale in linear.terms:
        if not isinstance(other, Remainder) or other is low:
            continue
        extent, left = divmod(int(scale) * int(other.divisor), coefficient * divisor)
        if left == 0 and extent > 1:
            inner = of(Remainder(quotient, extent))
            yield inner, of(Remainder(value, divisor * extent))
            yield simplified_index(inner), of(Remainder(value, divisor * extent))


def _without(linear: Linear, low: Remainder, high: Linear) -> Linear | None:
    """The sum without these terms; None if it does not have the divisions of `high`."""
    divisions: dict[Hashable, int] = {}
    for atom, coefficient in high.terms:
        if not isinstance(atom, Var):
            divisions[_key(atom)] = divisions.get(_key(atom), 0) + int(coefficient)
    rest = Linear((), linear.const - high.const) - high.kept(lambda atom: isinstance(atom, Var))
    for atom, coefficient in linear.terms:
        if atom is low:
            continue
        if divisions.get(_key(atom)) == int(coefficient):
            del divisions[_key(atom)]
        else:
            rest = rest + of(atom) * coefficient
    return None if divisions else rest


def _key(atom: Atom) -> Hashable:
    """Equal for atoms of the same value."""
    if isinstance(atom, Quotient | Remainder):
        terms = frozenset((_key(inner), int(coefficient)) for inner, coefficient in atom.value.terms)
        return type(atom), int(atom.divisor), int(atom.value.const), terms
    return atom
