"""Random steps on a state, as a person could take them: most fit, and the others must raise with a sentence."""

from __future__ import annotations

from math import prod

from ansor.compat.auto_scheduler.compute_dag import ComputeDAG
from ansor.compat.auto_scheduler.loop_state import State
from ansor.compat.auto_scheduler.stages import Iterator, IteratorKind, Stage
from ansor.compat.auto_scheduler.steps import SplitStep
from ansor.errors import ScheduleError
from tests.declarations import Draw

LENGTHS = (1, 2, 2, 3, 4, 5, 7)


def random_state(dag: ComputeDAG, draw: Draw, steps: int) -> State:
    """A state after at most this many steps, without the refused ones."""
    state = dag.get_init_state()
    for _ in range(steps):
        before = state.copy()
        try:
            _step(state, draw)
            dag.replay(state)
        except ScheduleError as error:
            assert "asked" in str(error) or "the schedule" in str(error), error
            state = before
    return state


def _step(state: State, draw: Draw) -> None:
    numbers = [number for number, stage in enumerate(state.stages) if stage.op_type == "compute"]
    number = draw.pick(numbers)
    stage = state[number]
    kind = draw.integer(0, 19)
    if kind == 0:
        state.compute_inline(number)
    elif kind == 1:
        state.compute_root(number)
    elif kind <= 4:
        target = draw.pick(numbers)
        if state[target].iters:
            state.compute_at(number, target, draw.pick(state[target].iters))
    elif kind == 5:
        state.cache_write(number, "local")
    elif kind == 6:
        source = draw.integer(0, len(state.stages) - 1)
        state.cache_read(source, draw.pick(["local", "shared"]), [number])
    elif stage.iters:
        _on_loops(state, number, stage, draw, kind)


def _on_loops(state: State, number: int, stage: Stage, draw: Draw, kind: int) -> None:
    loop = draw.pick(stage.iters)
    if kind <= 9:
        lengths = [draw.pick(LENGTHS) for _ in range(draw.integer(1, 3))]
        state.split(number, loop, lengths, draw.chance(80))
    elif kind == 10:
        splits = [k for k, step in enumerate(state.transform_steps) if isinstance(step, SplitStep)]
        if splits:
            state.follow_split(number, loop, draw.pick(splits), draw.integer(1, 3))
    elif kind == 11:
        splits = [k for k, step in enumerate(state.transform_steps) if isinstance(step, SplitStep)]
        if splits:
            state.follow_fused_split(number, loop, [draw.pick(splits)], 0, draw.chance(70))
    elif kind == 12:
        first = draw.integer(0, len(stage.iters) - 1)
        state.fuse(number, stage.iters[first : first + draw.integer(1, 3)])
    elif kind <= 14:
        order = list(stage.iters)
        state.reorder(number, [order.pop(draw.integer(0, len(order) - 1)) for _ in stage.iters])
    elif kind == 15:
        reduced = [one for one in stage.iters if one.iter_kind == IteratorKind.REDUCTION]
        if reduced:
            state.rfactor(number, draw.pick(reduced), draw.integer(0, 2))
    elif kind == 16:
        state.parallel(number, stage.iters[0])
    elif kind == 17:
        state.vectorize(number, _innermost(stage))
    elif kind == 18:
        state.unroll(number, loop, 4)
    else:
        state.pragma(number, loop, f"auto_unroll_max_step${draw.pick([0, 16, 64])}")


def _innermost(stage: Stage) -> Iterator:
    return next((one for one in reversed(stage.iters) if one.iter_kind == IteratorKind.SPATIAL), stage.iters[-1])


def iterations(stage: Stage) -> int:
    """The product of all loops' iterations, as far as they are known."""
    return prod(one.range.extent for one in stage.iters if one.range)
