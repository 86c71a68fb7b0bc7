"""Handles of loops: what `split`, `fuse` and `rfactor` give back, and what the methods of a stage take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ansor.te.expr import Axis


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop of stage `stage` that is no axis of its declaration as it stands: a part of one, several fused, or what partial results are kept along."""

    stage: str
    name: str
    iterations: Callable[[], int]

    @property
    def extent(self) -> int:
        """Iterations, where all of the stage is computed: computed at a loop of another, it may have fewer."""
        return self.iterations()

    def __repr__(self) -> str:
        return f"Loop({self.stage}.{self.name})"


AnyLoop: TypeAlias = Loop | Axis
"""Axes of a declaration stand for the loops they are as long as nothing was done to them."""
