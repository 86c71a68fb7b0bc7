"""Which copies of an unrolled body compute a part of its value: a condition on numbers of unrolled loops is decided when the code is compiled.

So is each row of a constant matrix that is written as a choice between sums: a copy computes one of them, and chooses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ansor.ir.linear import Linear, Quotient, Remainder, Var
from ansor.ir.loops import For, IndexValue
from ansor.ir.numpy_operations import OPERATIONS
from ansor.te.expr import COMPARISONS, LOGIC, Binary, Const, Expr, Not, Select
from ansor.te.fold import fold, postorder

MOST = 4096
"""Bodies with more copies are taken to compute all: none that large is compiled."""

Numbers = NDArray[Any]
"""One number per copy, or one for all."""

Grid = Mapping[Var, NDArray[np.int64]]
"""The numbers of unrolled loops, one dimension for each."""


def shares(value: Expr, path: Sequence[For]) -> dict[int, float]:
    """The share of the copies that compute each node, by its id; 0 for a choice that is made when the code is compiled. Empty if all copies compute all.

    path: the loops around it. Only those count that are unrolled, and as long, in all programs of a population.
    """
    chosen = [node for node in postorder(value) if isinstance(node, Select)]
    grid = _grid(path) if chosen else {}
    decided = {id(node): known for node in chosen if (known := _known(node.condition, grid)) is not None}
    if not decided:
        return {}
    shape = [len(numbers.ravel()) for numbers in grid.values()]
    computes = {id(value): np.ones(shape, np.bool_)}
    found: dict[int, float] = {}
    for node in reversed(list(postorder(value))):  # each before its operands
        here = computes.get(id(node))
        if here is None:
            continue  # of a condition that is decided
        known = decided.get(id(node))
        found[id(node)] = 0.0 if known is not None else float(here.mean())
        operands = [(child, here) for child in node.children] if known is None else [(node.children[1], here & known), (node.children[2], here & ~known)]
        for child, part in operands:
            computes[id(child)] = computes[id(child)] | part if id(child) in computes else part
    return found


def _grid(path: Sequence[For]) -> Grid:
    """Empty if there are more than `MOST` copies."""
    extents = {loop.var: loop.var.extent for loop in path if loop.unrolled is True and isinstance(loop.var.extent, int)}
    if math.prod(extents.values()) > MOST:
        return {}
    return dict(zip(extents, np.indices(tuple(extents.values()), np.int64, sparse=True), strict=True))


def _known(condition: Expr, grid: Grid) -> Numbers | None:
    """A condition in each copy; None if it also depends on other things."""

    def visit(node: Expr, below: tuple[Numbers | None, ...]) -> Numbers | None:
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

    return fold(condition, visit)


def _number(index: Linear, grid: Grid) -> Numbers | None:
    total = np.asarray(index.const)
    for atom, coefficient in index.terms:
        number = grid.get(atom) if isinstance(atom, Var) else None
        if isinstance(atom, Quotient | Remainder) and isinstance(atom.divisor, int):
            inner = _number(atom.value, grid)
            number = None if inner is None else inner // atom.divisor if isinstance(atom, Quotient) else inner % atom.divisor
        if number is None or not isinstance(coefficient, int):
            return None
        total = total + coefficient * number
    return total if isinstance(index.const, int) else None
