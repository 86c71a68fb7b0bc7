"""Any space of any small declaration, at any row, means what NumPy says; and a population is lowered as its rows are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansor.errors import ScheduleError
from ansor.ir import interpreter
from ansor.ir.dag import Dag
from ansor.schedule.legality import legal, legal_rows
from ansor.schedule.sketch import Rows, Sketch, schedule_json
from ansor.schedule.steps import (
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    Fuse,
    Reorder,
    Rfactor,
    Split,
    SplitOuter,
    Step,
    StorageAlign,
    Unroll,
    Vectorize,
    step_from_json,
)
from ansor.search.derive import spaces
from ansor.targets.base import parse_target
from tests.declarations import KINDS, Case, Draw, hypothesis_draw, random_case, seeded_draw
from tests.same_loops import described

TARGETS = [parse_target("cpu -mcpu=haswell -threads=1"), parse_target("cpu -mcpu=haswell -threads=4")]
quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def drawn_space(draw: Draw, case: Case) -> Sketch:
    return draw.pick(spaces(case.dag, draw.pick(TARGETS)))


def drawn_row(draw: Draw, sketch: Sketch) -> list[int]:
    return [draw.integer(0, int(size) - 1) for size in sketch.sizes]


@quick
@given(st.data())
def test_every_row_of_every_space_is_right(data: st.DataObject) -> None:
    draw = hypothesis_draw(data)
    case = random_case(draw)
    sketch = drawn_space(draw, case)
    row = drawn_row(draw, sketch)
    case.check(interpreter.run(sketch.lower_row(row), case.inputs), f"{sketch}\nrow {row}")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_of_declaration_in_all_its_spaces(kind: str) -> None:
    for seed in range(4):
        draw = seeded_draw(seed)
        case = random_case(draw, kind)
        for sketch in spaces(case.dag, TARGETS[seed % 2]):
            row = drawn_row(draw, sketch)
            case.check(interpreter.run(sketch.lower_row(row), case.inputs), f"{sketch}\nrow {row}")


@quick
@given(st.data())
def test_a_population_is_lowered_as_its_rows_are(data: st.DataObject) -> None:
    draw = hypothesis_draw(data)
    case = random_case(draw)
    sketch = drawn_space(draw, case)
    rows: Rows = np.asarray([drawn_row(draw, sketch) for _ in range(4)], dtype=np.int64)
    population = sketch.lower_rows(rows)
    allowed = legal_rows(population, TARGETS[1], len(rows))
    for k, row in enumerate(rows.tolist()):
        alone = sketch.lower_row(row)
        assert described(population, k) == described(alone)
        assert legal(alone, TARGETS[1]) == allowed[k]


@quick
@given(st.data())
def test_schedules_read_back_from_json(data: st.DataObject) -> None:
    draw = hypothesis_draw(data)
    case = random_case(draw)
    sketch = drawn_space(draw, case)
    row = drawn_row(draw, sketch)
    closed = Sketch(case.dag, tuple(map(step_from_json, schedule_json(sketch.concrete_steps(row)))))
    assert closed.steps == sketch.concrete_steps(row)
    assert described(closed.lower_row(())) == described(sketch.lower_row(row))


@quick
@given(st.data())
def test_schedules_by_hand_are_right_or_refused(data: st.DataObject) -> None:
    """Steps at random, with lengths that do not divide: what a person may write."""
    draw = hypothesis_draw(data)
    case = random_case(draw)
    sketch = Sketch(case.dag)
    for _ in range(draw.integer(1, 6)):
        step = _random_step(draw, sketch)
        try:
            following = sketch.then(step)
            following.lower_row(())
        except ScheduleError:
            continue
        sketch = following
    case.check(interpreter.run(sketch.lower_row(()), case.inputs), sketch)


def _random_step(draw: Draw, sketch: Sketch) -> Step:
    stage = draw.pick(sketch.state.stages)
    other = draw.pick(sketch.state.stages)
    if not stage.loops:
        return ComputeRoot(stage.name)
    loop = draw.integer(0, len(stage.loops) - 1)
    choice = draw.integer(0, 10)
    if choice == 7:
        return CacheWrite(stage.name)
    if choice == 8:
        return Rfactor(stage.name, draw.pick(stage.loops), draw.integer(0, stage.tensor.ndim))
    if choice == 9:
        return StorageAlign(stage.name, draw.integer(1, 4), 0)
    if choice == 10:
        return CacheRead(draw.pick(sketch.dag.stages).name, (stage.name,))
    if choice <= 1:
        return draw.pick([Split, SplitOuter])(stage.name, stage.loops[loop], (draw.integer(1, 4),), 2)
    if choice == 2:
        return Fuse(stage.name, stage.loops[loop : loop + 2])
    if choice == 3:
        return Reorder(stage.name, (*stage.loops[loop:], *stage.loops[:loop]))
    if choice == 4 and other.loops:
        return ComputeAt(stage.name, other.name, draw.pick(other.loops))
    if choice == 5:
        return draw.pick([ComputeInline(stage.name), ComputeRoot(stage.name)])
    return draw.pick([Vectorize(stage.name, stage.loops[-1]), Unroll(stage.name, stage.loops[loop])])


def test_cases_are_the_same_for_the_same_seed() -> None:
    first, second = (random_case(seeded_draw(7)) for _ in range(2))
    assert first.dag.key == second.dag.key and isinstance(first.dag, Dag)
    assert all(np.array_equal(value, second.inputs[name]) for name, value in first.inputs.items())
