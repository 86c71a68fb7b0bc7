"""Index arithmetic for one program or a whole population.

An index is a sum of integer multiples of loop variables plus a constant. Coefficients, constants and extents are `Int`s: a Python int when one
program is lowered, an int64 array of shape [n] or a recorded column when n programs of the same structure are lowered at once. Nothing here
branches on a value, except to skip a multiplication by the int 1, so all cases run the same code and give the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ansor.ir.columns import Int, choose, larger, smaller
from ansor.te.expr import Expr


@dataclass(frozen=True, eq=False)
class Var:
    """A loop variable, running from 0 to extent - 1."""

    name: str
    extent: Int

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Quotient:
    """`value` divided by `divisor`, rounded down: the outer part of a fused loop."""

    value: Linear
    divisor: Int


@dataclass(frozen=True, eq=False)
class Remainder:
    """The remainder of that division: the inner part of a fused loop."""

    value: Linear
    divisor: Int


@dataclass(frozen=True, eq=False)
class Opaque:
    """An integer that depends on data (an index read from a tensor)."""

    value: Expr


Atom = Var | Quotient | Remainder | Opaque


@dataclass(frozen=True, eq=False)
class Linear:
    """`const + sum(coefficient * atom)`."""

    terms: tuple[tuple[Atom, Int], ...] = ()
    const: Int = 0

    def __add__(self, other: Linear | Int) -> Linear:
        if not isinstance(other, Linear):
            return Linear(self.terms, self.const + other)
        if not self.terms or not other.terms:
            return Linear(self.terms or other.terms, self.const + other.const)
        merged: dict[Atom, Int] = dict(self.terms)
        for atom, coefficient in other.terms:
            merged[atom] = merged[atom] + coefficient if atom in merged else coefficient
        return Linear(tuple(merged.items()), self.const + other.const)

    def __mul__(self, factor: Int) -> Linear:
        if isinstance(factor, int) and factor == 1:
            return self
        return Linear(tuple((atom, coefficient * factor) for atom, coefficient in self.terms), self.const * factor)

    def __neg__(self) -> Linear:
        return self * -1

    def __sub__(self, other: Linear | Int) -> Linear:
        return self + (-other if isinstance(other, Linear) else -other)

    def kept(self, keep: Callable[[Atom], bool]) -> Linear:
        """Only the terms for which `keep` holds, without the constant."""
        return Linear(tuple((atom, coefficient) for atom, coefficient in self.terms if keep(atom)))

    def coefficient(self, atom: Atom) -> Int:
        """The multiple of `atom`, 0 when it does not occur."""
        return next((coefficient for other, coefficient in self.terms if other is atom), 0)


def of(atom: Atom) -> Linear:
    """The atom itself as an index."""
    return Linear(((atom, 1),))


def variables(linear: Linear) -> Iterator[Var]:
    """Every loop variable in `linear`, including those inside quotients; data-dependent parts are not entered."""
    for atom, _ in linear.terms:
        yield from atom_variables(atom)


def atom_variables(atom: Atom) -> Iterator[Var]:
    """Every loop variable of one atom."""
    if isinstance(atom, Var):
        yield atom
    elif isinstance(atom, Quotient | Remainder):
        yield from variables(atom.value)


def is_opaque(atom: Atom) -> bool:
    """True when the atom depends on data anywhere inside."""
    if isinstance(atom, Opaque):
        return True
    return isinstance(atom, Quotient | Remainder) and any(is_opaque(inner) for inner, _ in atom.value.terms)


def bounds(linear: Linear) -> tuple[Int, Int] | None:
    """Least and greatest value over all loops, both inclusive; None when the value depends on data."""
    low, high = linear.const, linear.const
    for atom, coefficient in linear.terms:
        found = atom_bounds(atom)
        if found is None:
            return None
        a, b = found[0] * coefficient, found[1] * coefficient
        low, high = low + smaller(a, b), high + larger(a, b)
    return low, high


def atom_bounds(atom: Atom) -> tuple[Int, Int] | None:
    """Least and greatest value of one atom. A remainder is bounded by its divisor only: the same for one row and for many."""
    if isinstance(atom, Opaque):
        return None
    if isinstance(atom, Var):
        return 0, atom.extent - 1
    inner = bounds(atom.value)
    if inner is None:
        return None
    if isinstance(atom, Quotient):
        return inner[0] // atom.divisor, inner[1] // atom.divisor
    wraps = (inner[0] // atom.divisor) != (inner[1] // atom.divisor)
    return choose(wraps, 0, inner[0] % atom.divisor), choose(wraps, atom.divisor - 1, inner[1] % atom.divisor)


def substituted(linear: Linear, values: Mapping[Var, Linear], opaque: Callable[[Opaque], Linear] | None = None) -> Linear:
    """`linear` with variables replaced; `opaque` rewrites data-dependent parts."""
    result = Linear((), linear.const)
    for atom, coefficient in linear.terms:
        result = result + _substituted_atom(atom, values, opaque) * coefficient
    return result


def _substituted_atom(atom: Atom, values: Mapping[Var, Linear], opaque: Callable[[Opaque], Linear] | None) -> Linear:
    if isinstance(atom, Var):
        return values.get(atom, of(atom))
    if isinstance(atom, Opaque):
        return opaque(atom) if opaque is not None else of(atom)
    inner = substituted(atom.value, values, opaque)
    return of(type(atom)(inner, atom.divisor))
