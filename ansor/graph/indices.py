"""Checks indices before our kernels look up rows with them: like PyTorch, we reject indices that are out of range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ansor.errors import OutOfRangeError
from ansor.graph.fuse import Group
from ansor.graph.ir import Array, Graph, Node
from ansor.graph.plan import out_of_range


class ArraysByName(Protocol):
    """The arrays of a network by their names."""

    def __getitem__(self, name: str) -> Array: ...


@dataclass(frozen=True, eq=False)
class IndexCheck:
    """Checks that `indices`, the memory that a look-up reads, are from 0 to `rows` - 1. `name`: that of the look-up."""

    name: str
    indices: Array
    rows: int

    def __call__(self) -> None:
        """Raises OutOfRangeError if an index is out of range."""
        # Viewed as unsigned, negative indices are large, so one comparison finds those below and those above the range.
        if int(np.maximum.reduce(self.indices.reshape(-1).view(f"uint{8 * self.indices.dtype.itemsize}"))) >= self.rows:
            raise OutOfRangeError(out_of_range(self.name, self.indices, self.rows))


def index_checks(graph: Graph, group: Group, arrays: ArraysByName) -> Sequence[IndexCheck]:
    """One check for each look-up of the group. Constant indices are checked now and not again, which may raise OutOfRangeError."""
    checks = []
    for node in group.nodes:
        for indices, rows in _looked_up(graph, node):
            check = IndexCheck(node.name, arrays[indices], rows)
            if indices in graph.constants:
                check()
            else:
                checks.append(check)
    return checks


def _looked_up(graph: Graph, node: Node) -> list[tuple[str, int]]:
    """The operands of a node that are indices, and how many rows each may address."""
    if node.op == "embedding":
        return [(node.inputs[1], graph.value(node.inputs[0]).shape[0])]
    if node.op == "gather":
        return [(node.inputs[1], graph.value(node.inputs[0]).shape[node.integer("axis")])]
    if node.op == "index":
        extents = graph.value(node.inputs[0]).shape
        return [(indices, extents[dim]) for indices, dim in zip(node.inputs[1:], node.integers("dims"), strict=True)]
    return []
