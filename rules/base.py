"""The interface of sketch rules.

A rule looks at one stage of a sketch and yields every sketch it can derive. It changes nothing in place, and yields nothing where it does not apply:

    @register("split_rows")
    @dataclass(frozen=True)
    class SplitRows:
        exclusive: bool = True                                   # where it applies, later rules are not tried

        def derive(self, sketch, stage, target):
            if stage != "C":
                return
            yield Derived(sketch.then(Split("C", "i", (8, 2), 3)))

Stages are visited consumers first, each once, unless a rule lists a stage, or a stage it has added, in `revisit`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target


@dataclass(frozen=True)
class Derived:
    """One sketch derived by a rule.

    revisit: stages to visit next, the last one first. pending: replaces the list of stages left to visit, the last one first.
    exclusive: later rules are not tried on this stage, although the rule is not exclusive in general.
    """

    sketch: Sketch
    revisit: tuple[str, ...] = ()
    exclusive: bool = False
    pending: tuple[str, ...] | None = None


class SketchRule(Protocol):
    """A sketch rule: a frozen value whose fields are its knobs."""

    @property
    def exclusive(self) -> bool:
        """True if later rules are not tried where this one applies."""
        ...

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        """Every sketch that the rule derives at `stage`, in a fixed order."""
        ...
