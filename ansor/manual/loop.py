"""Handles of loops: returned by `split`, `fuse` and `rfactor`, and accepted by the methods of a stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ansor.te.expr import Axis


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop of stage `stage` that is not an axis of its declaration: part of an axis, several fused axes, or the loop over partial results."""

    stage: str
    name: str
    iterations: Callable[[], int]

    @property
    def extent(self) -> int:
        """Iterations if the whole stage is computed. If the stage is computed at a loop of another one, there may be fewer."""
        return self.iterations()

    def __repr__(self) -> str:
        return f"Loop({self.stage}.{self.name})"


AnyLoop: TypeAlias = Loop | Axis
"""An axis of a declaration stands for its loop until that loop is split or fused."""
