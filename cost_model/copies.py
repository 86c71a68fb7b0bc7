"""Which copies of an unrolled body compute a part of its value: a condition on numbers of unrolled loops is decided when the code is compiled.

So is each row of a constant matrix that is written as a choice between sums: a copy computes one of them, and chooses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansor.ir.linear import Atom, Linear, Quotient, Remainder, Var
from ansor.ir.loops import For, IndexValue
from ansor.ir.numpy_operations import OPERATIONS
from ansor.schedule.legality import MAX_STATEMENTS
from ansor.te.expr import COMPARISONS, LOGIC, Binary, Const, Expr, Not, Select
from ansor.te.fold import fold, postorder

Numbers = NDArray[Any]
"""One number per copy, or one for all."""

Grid = Mapping[Var, NDArray[np.int64]]
"""The numbers of unrolled loops, one dimension for each."""


def shares(value: Expr, path: Sequence[For]) -> dict[int, float]:
    """The share of the copies that compute each node, by its id; 0 for a choice that is made when the code is compiled. Empty if all copies compute all.

    path: the loops around it. Of a population, those count that are as long in all programs; of a program lowered alone, all that are unrolled.
    """
    return _spread(value, path, np.maximum)


def uses(value: Expr, path: Sequence[For]) -> dict[int, float]:
    """The same, but a node that several others use counts once for each of them, as if the value were written out."""
    return _spread(value, path, np.add)


def _spread(value: Expr, path: Sequence[For], join: np.ufunc) -> dict[int, float]:
    nodes = list(postorder(value))
    grid = _grid(path) if any(isinstance(node, Select) for node in nodes) else {}
    decided = _decided(value, grid) if grid else {}
    if not decided:
        return {}
    computes: dict[int, Numbers] = {id(value): np.ones([numbers.size for numbers in grid.values()])}
    found: dict[int, float] = {}
    for node in reversed(nodes):  # each before its operands
        here = computes.pop(id(node), None)
        if here is None:
            continue  # of a condition that is decided
        found[id(node)] = 0.0 if id(node) in decided else float(here.mean())
        for child, part in _operands(node, here, decided.get(id(node))):
            computes[id(child)] = join(computes[id(child)], part) if id(child) in computes else part
    return found


def _operands(node: Expr, here: Numbers, chosen: Numbers | None) -> Iterator[tuple[Expr, Numbers]]:
    """The operands of a node, and in which copies they are computed. here: those of the node; chosen: where a decided choice takes its first value."""
    if chosen is None:
        yield from ((child, here) for child in node.children)
    else:
        yield node.children[1], here * chosen
        yield node.children[2], here * (1 - chosen)


def _grid(path: Sequence[For]) -> Grid:
    """Empty if there are more copies than a legal program has."""
    extents = {loop.var: loop.var.extent for loop in path if loop.unrolled is True and isinstance(loop.var.extent, int)}
    if math.prod(extents.values()) > MAX_STATEMENTS:
        return {}
    return dict(zip(extents, np.indices(tuple(extents.values()), np.int64, sparse=True), strict=True))


def _decided(value: Expr, grid: Grid) -> dict[int, Numbers]:
    """In which copies each choice takes its first value, 1 or 0, by its id; without choices that also depend on other things."""
    found: dict[int, Numbers] = {}

    def visit(node: Expr, below: tuple[Numbers | None, ...]) -> Numbers | None:
        if isinstance(node, Select) and below[0] is not None:
            found[id(node)] = np.asarray(below[0], np.float64)
        return _known(node, below, grid)

    fold(value, visit)
    return found


def _known(node: Expr, below: tuple[Numbers | None, ...], grid: Grid) -> Numbers | None:
    """An integer or a condition in each copy; None if it also depends on other things. below: its operands."""
    if isinstance(node, Const):
        return np.asarray(node.value)
    if isinstance(node, IndexValue):
        return _number(node.value, grid)
    known = [one for one in below if one is not None]
    if len(known) < len(below):
        return None
    if isinstance(node, Not):
        return np.logical_not(known[0])
    return OPERATIONS[node.op](*known) if isinstance(node, Binary) and node.op in (*COMPARISONS, *LOGIC) else None


def _number(index: Linear, grid: Grid) -> Numbers | None:
    total = np.asarray(index.const)
    for atom, coefficient in index.terms:
        number = _atom(atom, grid)
        if number is None or not isinstance(coefficient, int):
            return None
        total = total + coefficient * number
    return total if isinstance(index.const, int) else None


def _atom(atom: Atom, grid: Grid) -> Numbers | None:
    if isinstance(atom, Var):
        return grid.get(atom)
    if not isinstance(atom, Quotient | Remainder) or not isinstance(atom.divisor, int):
        return None
    inner = _number(atom.value, grid)
    if inner is None:
        return None
    return inner // atom.divisor if isinstance(atom, Quotient) else inner % atom.divisor
