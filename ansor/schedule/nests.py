"""The last pass of lowering: puts loops around stores, and stages computed inside others into their loops."""

from __future__ import annotations

from collections.abc import Mapping

from ansor.ir.columns import Flag, Int
from ansor.ir.loops import Buffer, For, Loops, Node, Runs
from ansor.schedule.bodies import Bodies
from ansor.schedule.extents import Numbers
from ansor.schedule.regions import Frame
from ansor.schedule.state import Amount, At, Inlined, Stage, State


def loops_of(
    name: str, state: State, numbers: Numbers, frames: Mapping[str, Frame], buffers: Mapping[str, Buffer], bodies: Bodies, known: Mapping[str, Node]
) -> Loops:
    """The whole program. known: nests that are already built, by root stage."""
    roots = [stage for stage in state.stages if not isinstance(stage.placement, At | Inlined)]
    body: list[Node] = []
    for stage in roots:
        body += [known[stage.name]] if stage.name in known else [*bodies.copies[stage.name], *_nest(stage, numbers, frames, buffers, bodies)]
    named = {**buffers, **bodies.packed}
    whole = (buffers[stage.name] for stage in roots)
    intermediates = (*(buffer for buffer in whole if buffer.scope != "output"), *bodies.workspaces)
    arguments = tuple(named[tensor.name] for tensor in state.dag.tensors)
    return Loops(name, arguments, intermediates, tuple(body), {tensor.name: tensor.shape for tensor in state.dag.tensors})


def _nest(stage: Stage, numbers: Numbers, frames: Mapping[str, Frame], buffers: Mapping[str, Buffer], bodies: Bodies) -> tuple[Node, ...]:
    body: tuple[Node, ...] = (bodies.stores[stage.name],)
    for k in range(len(stage.loops) - 1, -1, -1):
        inside = bodies.inside.get((stage.name, stage.loops[k]), ())
        nested = tuple(node for other in inside for node in _nest(other, numbers, frames, buffers, bodies))
        body = (_for(frames[stage.name], k, numbers, nested + body, tuple(buffers[other.name] for other in inside)),)
    return body


def _for(frame: Frame, k: int, numbers: Numbers, body: tuple[Node, ...], local: tuple[Buffer, ...]) -> For:
    stage, loop = frame.stage, frame.stage.loops[k]
    notes = stage.annotations
    runs = Runs(
        parallel=_flag(_amount(notes.parallel, numbers), k),
        vectorized=_flag(_amount(notes.vectorize.get(loop, 0), numbers), 0),
        unrolled=loop in notes.unroll,
        unroll_limit=_amount(notes.unroll_limit, numbers),
    )
    return For(frame.loops[loop], stage.origins.kinds[loop], stage.name, body, runs, local, notes.intrinsics.get(loop))


def _amount(amount: Amount, numbers: Numbers) -> Int:
    return numbers[amount][0] if isinstance(amount, str) else amount


def _flag(amount: Int, position: int) -> Flag:
    return amount > position
