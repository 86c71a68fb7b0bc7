"""Turns guards into loop ends: the last, shorter tile of an axis that tiles do not divide gets its own code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ansor.codegen.values import mentions
from ansor.ir.linear import Linear, Quotient, Var, bounds
from ansor.ir.loops import For, Guard

MAX_PARTIAL = 4  # the most lengths of a cut loop with code of their own
ANY_LENGTH = sys.maxsize


@dataclass(frozen=True, eq=False)
class Edge:
    """A guard as the end of one loop: it holds where `rest + step * var < high`."""

    var: Var
    step: int
    rest: Linear
    high: int

    def partial(self, extent: int) -> Sequence[int]:
        """How many iterations a cut loop may have left, descending: one number if only the last tile is cut, none if that is whole too."""
        tile = self.step * extent
        aligned = all(isinstance(atom, Var | Quotient) and int(coefficient) % tile == 0 for atom, coefficient in self.rest.terms)
        if not aligned:
            return range(extent - 1, 0, -1)
        left = -(-((self.high - int(self.rest.const)) % tile) // self.step)
        return (left,) if 0 < left < extent else ()


def edges(guards: tuple[Guard, ...], loops: Sequence[For], held: Sequence[For], most: int = MAX_PARTIAL) -> list[Edge] | None:
    """Each guard as the end of one of the loops; None if one is not: it changes with several of them, or with the loops held inside.

    most: the most lengths of the last tile.
    """
    found = []
    for guard in guards:
        cut = [loop for loop in loops if mentions(guard.value, loop.var)]
        if len(cut) != 1 or any(mentions(guard.value, loop.var) for loop in held) or guard.high is None:
            return None
        var = cut[0].var
        step = int(guard.value.coefficient(var))
        rest = Linear(tuple((atom, c) for atom, c in guard.value.terms if atom is not var), guard.value.const)
        least = bounds(guard.value)
        if step < 1 or mentions(rest, var) or (guard.low is not None and (least is None or least[0] < guard.low)):
            return None
        found.append(Edge(var, step, rest, int(guard.high)))
        if len(found[-1].partial(int(var.extent))) > most:
            return None
    return found if len({end.var for end in found}) == len(found) else None


def guards_by(guards: tuple[Guard, ...], variables: list[Var]) -> tuple[tuple[Guard, ...], tuple[Guard, ...]]:
    """(guards that none of the variables changes, the others)."""
    changed = tuple(guard for guard in guards if any(mentions(guard.value, var) for var in variables))
    return tuple(guard for guard in guards if guard not in changed), changed
