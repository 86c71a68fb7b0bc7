"""Values too large or too deep for one C expression, as several: their parts become variables, each computed once.

    e = x * x + 1, eleven times   ->   const float part0_0 = x[i] * x[i] + 1.0f;  const float part0_1 = part0_0 * part0_0 + 1.0f; ...

Variables are computed whatever the conditions above them say. So reads that may be out of bounds are moved inside where a value comes in pieces
(`Writer.safe`): what they give there, nobody looks at.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ansor.ir.linear import Linear, Opaque, Var
from ansor.ir.loops import Access, IndexValue
from ansor.te.expr import Const, Expr
from ansor.te.fold import LARGE, postorder

DEEPEST = 100
"""Operations inside each other that one expression may have: C compilers take 256 brackets inside each other, and an operation may have two."""

PIECE = 100
"""Nodes from which on a part of a large value becomes a variable."""

DEPTH = 30
"""The same, of operations inside each other."""


@lru_cache(maxsize=16)  # a store's value is asked for at every place of a tile
def pieces(value: Expr) -> tuple[Expr, ...]:
    """The parts of a value that become variables, operands first; none where the value fits an expression."""
    if not _is_large(value):
        return ()
    order = list(postorder(value, operands))
    uses: dict[int, int] = {}
    for node in order:
        for child in operands(node):
            uses[id(child)] = uses.get(id(child), 0) + 1
    size: dict[int, int] = {}
    depth: dict[int, int] = {}
    found = []
    for node in order:
        below = operands(node)
        size[id(node)] = 1 + sum(size[id(child)] for child in below)
        depth[id(node)] = 1 + max((depth[id(child)] for child in below), default=0)
        if isinstance(node, Const | IndexValue) or node is value:
            continue
        if uses[id(node)] > 1 or size[id(node)] > PIECE or depth[id(node)] > DEPTH:
            found.append(node)
            size[id(node)] = depth[id(node)] = 1
    return tuple(found)


def operands(node: Expr) -> Sequence[Expr]:
    """What is computed for a node: its operands, or what its indices depend on."""
    if isinstance(node, Access):
        return [value for index in node.index for value in _data(index)]
    return _data(node.value) if isinstance(node, IndexValue) else node.children


def _data(index: Linear) -> list[Expr]:
    found: list[Expr] = []
    for atom, _ in index.terms:
        if isinstance(atom, Opaque):
            found.append(atom.value)
        elif not isinstance(atom, Var):
            found += _data(atom.value)
    return found


def _is_large(value: Expr) -> bool:
    """Whether a value is too large to be written out, or too deep."""
    count = 0
    stack = [(value, 1)]
    while stack:
        node, depth = stack.pop()
        count += 1
        if count > LARGE or depth > DEEPEST:
            return True
        stack += [(child, depth + 1) for child in operands(node)]
    return False
