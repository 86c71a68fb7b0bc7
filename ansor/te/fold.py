"""Going through expressions without recursion: they may be thousands of nodes deep, and parts of them may be shared.

Each node is visited once, however often it is used. So time and memory grow with the number of nodes, not with the length of the text,
which doubles with each `e = e * e`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter, is_
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ansor.te.expr import Expr

T = TypeVar("T")


def postorder(expr: Expr, operands: Callable[[Expr], Sequence[Expr]] = attrgetter("children")) -> Iterator[Expr]:
    """Every node once, operands first, from left to right. `operands`: those of a node that are visited, all by default."""
    opened: set[int] = set()
    done: set[int] = set()
    stack = [expr]
    while stack:
        node = stack[-1]
        key = id(node)
        if key not in opened:
            opened.add(key)
            waiting = [child for child in operands(node) if id(child) not in done]
            if waiting:
                waiting.reverse()
                stack += waiting
                continue
        stack.pop()
        if key not in done:
            done.add(key)
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
    if all(map(is_, operands, children)):
        return node
    return node.rebuilt(operands)
