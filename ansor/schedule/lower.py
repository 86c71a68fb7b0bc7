"""Lowering takes a state and its numbers to loop nests, for one program or a whole population, in passes over one frozen value: `PASSES`.

Nothing branches on a number, so lowering a matrix of rows equals lowering its rows one by one, and can be recorded before any rows exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ansor.ir.loops import Buffer, Loops
from ansor.ir.passes import Pass, run
from ansor.ir.printer import linear_text, number_text
from ansor.schedule.bodies import Bodies, bodies_of
from ansor.schedule.extents import Numbers
from ansor.schedule.known_nests import KnownNest, KnownNests
from ansor.schedule.nests import loops_of
from ansor.schedule.regions import Regions, regions_of
from ansor.schedule.scopes import Scopes, input_buffers, stage_buffers
from ansor.schedule.state import State

__all__ = ["PASSES", "Lowering", "Numbers", "lower", "lower_with"]


@dataclass(frozen=True, eq=False)
class LoweringContext:
    """What is known before a schedule is lowered. scopes: which memories hold intermediates; known: lowered nests, by root stage; same: the shared buffer for
    a buffer.
    """

    scopes: Scopes = Scopes()
    known: Mapping[str, KnownNest] = field(default_factory=dict)
    same: Callable[[Buffer], Buffer] = lambda buffer: buffer


@dataclass(frozen=True, eq=False)
class Lowering:
    """A schedule on its way to loop nests. Each pass fills in a field."""

    state: State
    numbers: Numbers
    name: str = "kernel"
    around: LoweringContext = LoweringContext()
    regions: Regions | None = None
    buffers: Mapping[str, Buffer] = field(default_factory=dict)
    bodies: Bodies | None = None
    loops: Loops | None = None


def lower(state: State, numbers: Numbers, name: str = "kernel", scopes: Scopes | None = None) -> Loops:
    """The loop nests of `state` with its choices set to `numbers`. scopes: which memories hold its intermediates."""
    loops = run(PASSES, Lowering(state, numbers, name, LoweringContext(scopes or Scopes()))).loops
    assert loops is not None
    return loops


def lower_with(nests: KnownNests, state: State, numbers: Numbers, name: str = "kernel") -> Loops:
    """Like `lower`, but takes known nests from `nests` and adds the others to it."""
    with nests.lock:
        nests.begin()
        keys = nests.keys(state, numbers)
        done = run(PASSES, Lowering(state, numbers, name, around=LoweringContext(known=nests.of(keys), same=nests.same)))
        assert done.loops is not None and done.regions is not None
        nests.keep(keys, state, done.regions.frames, done.loops.body)
        return done.loops


# the passes -----------------------------------------------------------------------------------------------------------------------------------------------


def _find_regions(one: Lowering) -> Lowering:
    frames = {stage: frame for nest in one.around.known.values() for stage, frame in nest.frames.items()}
    return replace(one, regions=regions_of(one.state, one.numbers, frames))


def _assign_scopes(one: Lowering) -> Lowering:
    assert one.regions is not None
    buffers = input_buffers(one.state) | stage_buffers(one.state, one.regions.frames, one.around.scopes, one.numbers)
    return replace(one, buffers={name: one.around.same(buffer) for name, buffer in buffers.items()})


def _write_bodies(one: Lowering) -> Lowering:
    assert one.regions is not None
    return replace(one, bodies=bodies_of(one.state, one.regions, one.buffers, one.around.scopes, one.around.known))


def _make_nests(one: Lowering) -> Lowering:
    assert one.regions is not None and one.bodies is not None
    known = {root: nest.node for root, nest in one.around.known.items()}
    return replace(one, loops=loops_of(one.name, one.state, one.numbers, one.regions.frames, one.buffers, one.bodies, known))


def _regions_text(one: Lowering) -> Iterator[str]:
    assert one.regions is not None
    for name, frame in one.regions.frames.items():
        where = f", inside {', '.join(var.name for var in frame.path)}" if frame.path else ""
        parts = (f"{linear_text(start)} + {number_text(length)}" for start, length in zip(frame.region.base, frame.region.shape, strict=True))
        yield f"{name}[{', '.join(parts)}]{where}"
        yield f"  loops {', '.join(f'{var.name} in {number_text(var.extent)}' for var in frame.loops.values()) or 'none'}"


def _bodies_text(one: Lowering) -> Iterator[str]:
    assert one.bodies is not None
    for store in one.bodies.stores.values():
        yield from store.lines()
    for root, copies in one.bodies.copies.items():
        if copies:
            yield f"{root}: {len(copies)} copies ahead"


PASSES: tuple[Pass[Lowering], ...] = (
    Pass("regions", "the region and the loops of each stage, consumers first", _find_regions, lambda one: "\n".join(_regions_text(one))),
    Pass("scopes", "which memory holds each tensor", _assign_scopes, lambda one: "\n".join(map(str, one.buffers.values()))),
    Pass("values", "bodies over buffers", _write_bodies, lambda one: "\n".join(_bodies_text(one))),
    Pass("nests", "loops around stores", _make_nests, lambda one: str(one.loops)),
)
"""The passes from a schedule to loops, in order."""
