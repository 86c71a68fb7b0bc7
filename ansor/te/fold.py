"""Going through expressions without recursion: they may be thousands of nodes deep, and parts of them may be shared.

Each node is visited once, however often it is used. So time and memory grow with the number of nodes, not with the length of the text,
which doubles with each `e = e * e`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ansor.te.expr import Expr

T = TypeVar("T")


def postorder(expr: Expr, operands: Callable[[Expr], Sequence[Expr]] = attrgetter("children")) -> Iterator[Expr]:
    """Every node once, operands first, from left to right. `operands`: those of a node that are visited, all by default."""
    done: set[int] = set()
    stack = [expr]
    while stack:
        node = stack[-1]
        waiting = [] if id(node) in done else [child for child in operands(node) if id(child) not in done]
        if waiting:
            stack.extend(reversed(waiting))
            continue
        stack.pop()
        if id(node) not in done:
            done.add(id(node))
            yield node


def fold(expr: Expr, visit: Callable[[Expr, tuple[T, ...]], T]) -> T:
    """What `visit(node, results of its operands)` gives for the whole expression."""
    known: dict[int, T] = {}
    for node in postorder(expr):
        known[id(node)] = visit(node, tuple(known[id(child)] for child in node.children))
    return known[id(expr)]


def with_operands(node: Expr, operands: tuple[Expr, ...]) -> Expr:
    """The node over these operands: itself when they are its own."""
    children = node.children
    if all(new is old for new, old in zip(operands, children, strict=True)):
        return node
    return node.rebuilt(operands)
