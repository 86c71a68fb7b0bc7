"""Handles of loops: returned by `split`, `fuse` and `rfactor`, and accepted by the methods of a stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ansor.te.expr import Axis


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop of stage `stage` that is not an axis of its declaration: a part of one, several fused ones, or the loop over partial results."""

    stage: str
    name: str
    iterations: Callable[[], int]

    @property
    def extent(self) -> int:
        """Iterations if all of the stage is computed; computed at a loop of another, it may have fewer."""
        return self.iterations()

    def __repr__(self) -> str:
        return f"Loop({self.stage}.{self.name})"


AnyLoop: TypeAlias = Loop | Axis
"""Axes of a declaration stand for their loops until those are changed."""
