"""An expression as JSON that is the same for equal expressions, whatever their axes and tensors are called. Keys are made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ansor.te.expr import Axis, Binary, Call, Cast, Const, Expr, Not, Reduce, Select
from ansor.te.fold import fold
from ansor.te.tensor import Read

WRITTEN_OUT = 10_000
"""An expression with at most this many nodes, written out, becomes one nested list."""

NESTED = 200
"""The deepest nesting of such a list: JSON's reader and writer recurse at each level."""


def canonical(expr: Expr, axes: Mapping[int, int], number: Mapping[str, int]) -> object:
    """The expression as a nested list. axes: id of an axis -> its position; number: name of a tensor -> its number.

    An expression too large or too deep for that becomes a list of its distinct parts, each with the positions of its operands in the list. The form
    depends only on what the expression says, not on which of its parts are shared.
    """
    nodes, depth = fold(expr, _size)
    if nodes <= WRITTEN_OUT and depth <= NESTED:
        return fold(expr, lambda node, operands: entry(node, list(operands), axes, number[node.tensor.name] if isinstance(node, Read) else None))
    known: dict[str, int] = {}

    def place(node: Expr, operands: tuple[int, ...]) -> int:
        return known.setdefault(json.dumps(entry(node, list(operands), axes, number[node.tensor.name] if isinstance(node, Read) else None)), len(known))

    fold(expr, place)
    return ["parts", list(known)]


def _size(node: Expr, operands: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    """The number of nodes, each part counted as often as it is used, and the depth."""
    return 1 + sum(nodes for nodes, _ in operands), 1 + max((depth for _, depth in operands), default=0)


def entry(expr: Expr, operands: Sequence[object], axes: Mapping[int, int], read: object) -> object:
    """One node as a list. `operands` and `read` represent its operands and the tensor that it reads."""
    if isinstance(expr, Const):
        return ["const", expr.dtype, float(expr.value).hex() if isinstance(expr.value, float) else int(expr.value)]
    if isinstance(expr, Axis):
        return ["axis", axes[id(expr)]]
    if isinstance(expr, Read):
        return ["read", read, *operands]
    if isinstance(expr, Binary):
        return [expr.op, *operands]
    if isinstance(expr, Call):
        return ["call", expr.name, *operands]
    if isinstance(expr, Reduce):
        return ["reduce", expr.combiner, *operands]
    if isinstance(expr, Cast):
        return ["cast", expr.dtype, *operands]
    if isinstance(expr, Select):
        return ["select", *operands]
    assert isinstance(expr, Not)
    return ["not", *operands]
