"""Whatever is called, in whatever order: what is not refused means what NumPy says, interpreted and compiled."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansor.codegen.toolchain import find_compiler
from ansor.ir import interpreter
from tests.declarations import KINDS, hypothesis_draw, random_case, seeded_draw
from tests.manual.calls import drawn_schedule
from tests.programs import TARGETS, Bench, Program


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_schedules_are_right_or_refused(data: st.DataObject) -> None:
    draw = hypothesis_draw(data)
    case = random_case(draw)
    sketch, _ = drawn_schedule(draw, case.dag)
    case.check(interpreter.run(sketch.lower_row(()), case.inputs), sketch)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_schedules_of_every_kind_of_declaration(kind: str) -> None:
    for seed in range(8):
        draw = seeded_draw(seed)
        case = random_case(draw, kind)
        sketch, _ = drawn_schedule(draw, case.dag)
        case.check(interpreter.run(sketch.lower_row(()), case.inputs), sketch)


def test_calls_of_every_kind_are_taken() -> None:
    taken: set[str] = set()
    for seed in range(120):
        draw = seeded_draw(seed)
        sketch, _ = drawn_schedule(draw, random_case(draw).dag)
        taken |= {type(step).__name__ for step in sketch.steps}
    assert taken == {"Split", "SplitOuter", "Fuse", "Reorder", "ComputeAt", "ComputeInline", "CacheWrite", "CacheRead", "Rfactor", "Vectorize", "Unroll",
                     "Parallel", "PragmaUnroll"}


@pytest.mark.compiler
def test_compiled_schedules_are_right(tmp_path: Path) -> None:
    programs = []
    for seed in range(60):
        draw = seeded_draw(1000 + seed)
        case = random_case(draw)
        sketch, _ = drawn_schedule(draw, case.dag, 10)
        programs.append(Program(case, sketch, (), draw.pick(TARGETS), "program"))
    problems = Bench(find_compiler(""), tmp_path).problems(programs)
    wrong = [f"{program}\n{problem}" for program, problem in zip(programs, problems, strict=True) if problem]
    assert not wrong, wrong[0]
