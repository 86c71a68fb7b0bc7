"""Finds the part of an expression that is needed twice. A core computes in place, so one of the two uses needs a copy.

    (x * 3) + ((x * 5) >> 7)      x = max(acc + bias, 0)      ->      x
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from ansor.ir.linear import Linear
from ansor.ir.loops import Access
from ansor.ir.printer import linear_text
from ansor.te.expr import Binary, Const, Expr
from ansor.te.fold import walk
from ansor.vta.nests import accesses, as_int32


def exactly(index: tuple[Linear, ...]) -> Hashable:
    """An index in a form that can be compared."""
    return tuple(map(linear_text, index))


def anywhere(index: tuple[Linear, ...]) -> Hashable:
    """The same for all indices: a statement reads a buffer at one place."""
    del index
    return ()


def signature(value: Expr, where: Callable[[tuple[Linear, ...]], Hashable] = exactly) -> Hashable:
    """A key that is equal for equal expressions. where: the key of an index."""
    value = as_int32(value)
    if isinstance(value, Access):
        return id(value.buffer), where(value.index)
    if isinstance(value, Const):
        return value.value
    return (type(value).__name__, getattr(value, "op", ""), value.dtype, *(signature(child, where) for child in value.children))


def shared_part(left: Expr, right: Expr, whole: Callable[[Access], bool]) -> Expr | None:
    """The largest expression that is in both and has an element of its own for each result; None if there is none."""
    theirs = {signature(node) for node in walk(right)}
    for node in walk(left):
        if any(whole(access) for access in accesses(node)) and signature(node) in theirs:
            return node
    return None


def needed_twice(value: Expr) -> Access | None:
    """An access to the buffer that an expression needs a copy of; None if it needs none."""
    for node in walk(value):
        if isinstance(node, Binary) and not isinstance(as_int32(node.left), Const) and not isinstance(as_int32(node.right), Const):
            theirs = {access.buffer for access in accesses(node.right)}
            both = [access for access in accesses(node.left) if access.buffer in theirs]
            if both:
                return max(both, key=lambda access: len(access.index))  # the sums, rather than a tensor with one number for each channel
    return None
