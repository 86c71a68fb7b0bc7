"""Random calls of a schedule, as a user may write them, in any order; refused ones are left out. A call can be repeated on a fresh schedule."""

from __future__ import annotations

from collections.abc import Callable

from ansor.errors import ScheduleError
from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.manual.loop import AnyLoop
from ansor.manual.schedule import Schedule, create_schedule
from ansor.schedule.sketch import Sketch
from tests.declarations import Draw

Call = Callable[[Schedule], object]


def fresh(dag: Dag) -> Schedule:
    """An empty schedule of a declaration."""
    return create_schedule(list(dag.outputs))


def drawn_schedule(draw: Draw, dag: Dag, count: int = 8) -> tuple[Sketch, Schedule]:
    """The result of up to `count` calls that fit each other, and the schedule that they were made on."""
    calls: list[Call] = []
    schedule, sketch = fresh(dag), fresh(dag).sketch(dag.tensors)
    for _ in range(draw.integer(1, count)):
        call = drawn_call(draw, schedule)
        found = called(dag, [*calls, call])
        if found is not None:
            calls.append(call)
            sketch, schedule = found
    return sketch, schedule


def called(dag: Dag, calls: list[Call]) -> tuple[Sketch, Schedule] | None:
    """The result of calls on a fresh schedule; None if one of them, or their combination, is refused."""
    schedule = fresh(dag)
    try:
        for call in calls:
            call(schedule)
        sketch = schedule.sketch(dag.tensors)
        sketch.lower_row(())
    except ScheduleError:
        return None
    return sketch, schedule


def loop_named(schedule: Schedule, stage: str, name: str) -> AnyLoop:
    """The handle of a loop by its name."""
    return next(loop for loop in schedule[stage].leaf_iter_vars if loop.name == name)


def drawn_call(draw: Draw, schedule: Schedule) -> Call:
    """One call, of any kind, on any stage; it may not fit."""
    stage, other = draw.pick(schedule.stages).name, draw.pick(schedule.stages).name
    names = [loop.name for loop in schedule[stage].leaf_iter_vars]
    if not names:
        return lambda s: s[stage].compute_root()
    place = draw.integer(0, len(names) - 1)
    loop, length = names[place], draw.integer(1, 6)
    form = draw.integer(0, 13)
    if form <= 1:
        return lambda s: s[stage].split(loop_named(s, stage, loop), factor=length)
    if form == 2:
        return lambda s: s[stage].split(loop_named(s, stage, loop), nparts=length)
    if form == 3:
        second, factor = draw.pick(names), draw.integer(1, 4)
        return lambda s: s[stage].tile(loop_named(s, stage, loop), loop_named(s, stage, second), length, factor)
    if form == 4:
        return lambda s: s[stage].fuse(*(loop_named(s, stage, name) for name in names[place : place + 2]))
    if form == 5:
        order = sorted(names[place:], key=lambda _: draw.integer(0, 99))
        return lambda s: s[stage].reorder(*(loop_named(s, stage, name) for name in order))
    if form <= 7:
        inside = [loop.name for loop in schedule[other].leaf_iter_vars]
        if not inside:
            return lambda s: s[stage].compute_inline()
        target = draw.pick(inside)
        return lambda s: s[stage].compute_at(s[other], loop_named(s, other, target))
    if form <= 10:
        method = draw.pick(["vectorize", "parallel", "unroll"])
        chosen = names[-1] if method == "vectorize" and draw.chance(50) else names[0] if method == "parallel" else loop
        return lambda s: getattr(s[stage], method)(loop_named(s, stage, chosen))
    if form == 11:
        return lambda s: s.cache_write(stage, "local")
    if form == 12:
        read = draw.pick([*(read.tensor.name for read in access.reads(schedule.state[stage].tensor)), stage])
        return lambda s: s.cache_read(read, "global", [stage])
    kept = draw.integer(-1, 1)
    return draw.pick([
        lambda s: s.rfactor(stage, loop_named(s, stage, loop), kept),
        lambda s: s[stage].compute_inline(),
        lambda s: s[stage].pragma(loop_named(s, stage, loop), "auto_unroll_max_step", 16),
    ])  # fmt: skip
