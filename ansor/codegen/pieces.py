"""Splits values that are too large or too deep for one C expression: their parts become variables, each computed once.

    e = x * x + 1, eleven times   ->   const float part0_0 = x[i] * x[i] + 1.0f;  const float part0_1 = part0_0 * part0_0 + 1.0f; ...

Variables are computed regardless of the conditions above them. So possibly out-of-bounds reads in a split value are clipped into bounds
(`Writer.safe`): their results there are never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ansor.ir.linear import Linear, Opaque, Var
from ansor.ir.loops import Access, IndexValue
from ansor.te.expr import Const, Expr
from ansor.te.fold import LARGE, postorder

DEEPEST = 100
"""The deepest nesting of operations in one expression: C compilers accept 256 nested brackets, and an operation may have two."""

PIECE = 100
"""Nodes beyond which a part of a large value becomes a variable."""

DEPTH = 30
"""The same for nested operations."""


@lru_cache(maxsize=16)  # called for a store's value at every place of a tile
def pieces(value: Expr) -> tuple[Expr, ...]:
    """The parts of a value that become variables, operands first; none if the value fits one expression."""
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
    """The values computed for a node: its operands, or the data its indices depend on."""
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
    """Whether a value is too large or too deep for one expression."""
    count = 0
    stack = [(value, 1)]
    while stack:
        node, depth = stack.pop()
        count += 1
        if count > LARGE or depth > DEEPEST:
            return True
        stack += [(child, depth + 1) for child in operands(node)]
    return False
