"""Traverses expressions without recursion: they may be thousands of nodes deep, and share parts.

Each node is visited once, however often it is used. So time and memory grow with the number of nodes, not with the length of the text,
which doubles with each `e = e * e`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter, is_
from typing import Protocol, Self, TypeVar


class Node(Protocol):
    """What can be traversed: a node with operands of its own kind."""

    @property
    def children(self) -> tuple[Self, ...]:
        """Operands, in order."""
        ...

    def rebuilt(self, children: tuple[Self, ...]) -> Self:
        """The same node over other operands."""
        ...


T = TypeVar("T")
N = TypeVar("N", bound=Node)


def postorder(expr: N, operands: Callable[[N], Sequence[N]] = attrgetter("children")) -> Iterator[N]:
    """Every node once, operands first, from left to right. `operands`: which operands of a node to visit, all by default."""
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


def fold(expr: N, visit: Callable[[N, tuple[T, ...]], T]) -> T:
    """The result of `visit(node, results of its operands)` for the whole expression."""
    known: dict[int, T] = {}
    for node in postorder(expr):
        known[id(node)] = visit(node, tuple(known[id(child)] for child in node.children))
    return known[id(expr)]


def with_operands(node: N, operands: tuple[N, ...]) -> N:
    """The node over these operands; the node itself if they are unchanged."""
    children = node.children
    if all(map(is_, operands, children)):
        return node
    return node.rebuilt(operands)


LARGE = 1000
"""Up to this many nodes, an expression is treated as written out: a shared part counts, and is computed, as often as it is used. Larger expressions may share
parts more often than can be written out, so each part counts once."""


def walk(expr: N) -> Iterator[N]:
    """The node and everything below it, parents first. A shared node is repeated for each use; after `LARGE` nodes, only new nodes follow."""
    stack = [expr]
    met: set[int] = set()
    count = 0
    while stack:
        node = stack.pop()
        if count >= LARGE and id(node) in met:
            continue
        count += 1
        met.add(id(node))
        yield node
        stack.extend(reversed(node.children))


def transform(expr: N, replace: Callable[[N], N | None]) -> N:
    """A copy with every node replaced for which `replace` returns one; the rest is rebuilt bottom up. Shared nodes stay shared."""
    known: dict[int, N] = {}
    opened: set[int] = set()
    stack = [expr]
    while stack:
        node = stack[-1]
        key = id(node)
        if key not in known and key not in opened:
            opened.add(key)
            found = replace(node)
            if found is None:
                waiting = [child for child in node.children if id(child) not in known]
                waiting.reverse()
                stack += waiting
                continue
            known[key] = found
        stack.pop()
        if key not in known:
            known[key] = with_operands(node, tuple([known[id(child)] for child in node.children]))
    return known[id(expr)]
