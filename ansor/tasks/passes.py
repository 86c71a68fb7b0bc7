"""Shows a program of a task after every pass, from its schedule to its source text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansor.ir.passes import PassText, traced
from ansor.schedule.lower import PASSES, Lowering
from ansor.schedule.sketch import Sketch
from ansor.targets.base import Target


def passes_of(sketch: Sketch, row: Sequence[int], target: Target, entry: str = "kernel") -> Iterator[PassText]:
    """The passes of lowering, then those that generate the target's source text."""
    loops = None
    for one, lowering in traced(PASSES, Lowering(sketch.state, sketch.row_numbers(row), entry)):
        yield PassText(one.name, one.does, one.shown(lowering))
        loops = lowering.loops
    assert loops is not None
    yield from target.passes(loops, entry)
