"""Leave a stage as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ansor.rules.base import Derived
from ansor.rules.registry import register
from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target


@register("skip_stage")
@dataclass(frozen=True)
class SkipStage:
    """The last rule: also try a stage unchanged if no exclusive rule applied. Without it, no sketch could leave a stage as it is."""

    exclusive: bool = True

    def derive(self, sketch: Sketch, stage: str, target: Target) -> Iterator[Derived]:
        yield Derived(sketch)
