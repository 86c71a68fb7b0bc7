"""Which memory holds what. The second pass of lowering gives every stage a buffer in a scope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ansor.ir.columns import Int
from ansor.ir.loops import Buffer
from ansor.schedule.extents import Numbers
from ansor.schedule.regions import Frame
from ansor.schedule.state import At, Stage, State

WHOLE, INSIDE = "workspace", "local"
"""The memories of a processor: the workspace that the caller passes to a kernel, and the stack."""


@dataclass(frozen=True)
class Scopes:
    """Names of memories. whole: for intermediates that live across nests; inside: for what is computed inside a loop, for that loop. A stage may name
    another (`SetScope`).
    """

    whole: str = WHOLE
    inside: str = INSIDE


def stage_buffers(state: State, frames: Mapping[str, Frame], scopes: Scopes, numbers: Numbers) -> dict[str, Buffer]:
    """A buffer for every stage that is not inlined."""
    found = {}
    for name, frame in frames.items():
        stage = frame.stage
        scope = "output" if state.is_output(name) else stage.storage.scope or (scopes.inside if isinstance(stage.placement, At) else scopes.whole)
        amount = stage.storage.copies
        copies = numbers[amount][0] if isinstance(amount, str) else amount
        found[name] = Buffer(name, _aligned(stage, tuple(frame.region.shape[k] for k in frame.region.order)), stage.tensor.dtype, scope, copies=copies)
    return found


def input_buffers(state: State) -> dict[str, Buffer]:
    """A buffer for every tensor that the caller passes in."""
    return {tensor.name: Buffer(tensor.name, tensor.shape, tensor.dtype, "constant" if tensor.constant else "input") for tensor in state.dag.inputs}


def _aligned(stage: Stage, shape: tuple[Int, ...]) -> tuple[Int, ...]:
    if stage.storage.align is None or not shape:
        return shape
    factor, offset = stage.storage.align
    last = shape[-1]
    return (*shape[:-1], last + (offset - last) % factor)
