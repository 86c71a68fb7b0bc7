"""Indices are looked at before a kernel of ours looks up rows with them: PyTorch refuses those that are out of range, and so do we."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from ansor.errors import OutOfRangeError
from ansor.graph.fuse import Group
from ansor.graph.ir import Array, Graph, Node


class ArraysByName(Protocol):
    """Where the arrays of a network lie."""

    def __getitem__(self, name: str) -> Array: ...


def index_checks(graph: Graph, group: Group, arrays: ArraysByName) -> Sequence[Callable[[], None]]:
    """One check for each look-up of the group: it raises OutOfRangeError. Constant indices are checked now, and never again."""
    checks = []
    for node in group.nodes:
        if node.op == "embedding":
            weight, indices = node.inputs
            check = _check(node, arrays[indices], graph.value(weight).shape[0])
            if indices in graph.constants:
                check()
            else:
                checks.append(check)
    return checks


def _check(node: Node, indices: Array, rows: int) -> Callable[[], None]:
    # Seen as unsigned, negative indices are large, so that one look finds those below and those above.
    unsigned = indices.reshape(-1).view(f"uint{8 * indices.dtype.itemsize}")
    largest = np.maximum.reduce

    def check() -> None:
        if int(largest(unsigned)) >= rows:
            wrong = next(index for index in indices.flat if not 0 <= int(index) < rows)
            raise OutOfRangeError(f"{node.name} looks up row {wrong} of a table of {rows} rows; indices have to be from 0 to {rows - 1}")

    return check
