"""Random declarations, every sketch of each, random rows, machines of several widths and threads: interpreted, compiled and sanitized, they equal NumPy.

`python tests/fuzz.py` runs as many as you like.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansor.codegen.dialect import Dialect
from ansor.codegen.source import CSource
from tests.declarations import Draw, hypothesis_draw, seeded_draw
from tests.mixed_declarations import ALL_KINDS, any_case
from tests.programs import Bench, Program, interpreted, programs_of, sanitized_problems, sanitizer_compiler

pytestmark = [pytest.mark.compiler, pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")]  # arithmetic that wraps, on purpose
MOST = 24  # programs of one declaration
INTERPRETED = 2000  # statements


def drawn(draw: Draw, kind: str | None = None) -> list[Program]:
    return programs_of(draw, any_case(draw, kind))[:MOST]


def seeded(kind: str, seed: int, count: int) -> list[Program]:
    found: list[Program] = []
    while len(found) < count:
        found += drawn(seeded_draw(seed), kind)
        seed += 1
    return found[:count]


def check(programs: list[Program], problems: list[str]) -> None:
    assert len(problems) == len(programs)
    for program, problem in zip(programs, problems, strict=True):
        assert not problem, f"{problem}\n{program}\n{program.source.text}"


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_every_sketch_of_a_declaration_equals_numpy(bench: Bench, data: st.DataObject) -> None:
    programs = drawn(hypothesis_draw(data))
    for program in programs:
        assert not interpreted(program, INTERPRETED), str(program)
    check(programs, bench.problems(programs))


@pytest.mark.parametrize("kind", sorted(ALL_KINDS))
def test_kind_of_declaration_as_shipped(kind: str, shipped: Bench) -> None:
    """Twenty kinds, fifteen programs each, with the optimisation that kernels get."""
    programs = seeded(kind, 1, 15)
    for program in programs:
        assert not interpreted(program, INTERPRETED), str(program)
    check(programs, shipped.problems(programs))


@pytest.mark.parametrize("half", range(2))
def test_kinds_of_declaration_in_a_dialect_for_boards(half: int, bench: Bench) -> None:
    """Indices are ints, nothing runs in parallel, entry points know no thread pool."""
    found = [program for kind in sorted(ALL_KINDS)[half::2] for program in seeded(kind, 70, 3)]
    programs = [replace(program, target=replace(program.target, dialect=Dialect("int", 16, pool=False))) for program in found]
    for program in programs:
        assert "parallel_for" not in program.source.text and "long begin" not in program.source.text
    check(programs, bench.problems(programs))


FOUND = {"quantized": 54, "conv": 45}
"""Declarations that programs were once wrong of: a compiler's masked store; a packed operand of a reduction that was fused."""


@pytest.mark.parametrize("kind", FOUND)
def test_what_was_wrong_once(kind: str, shipped: Bench) -> None:
    programs = programs_of(draw := seeded_draw(FOUND[kind]), any_case(draw, kind))
    for program in programs:
        assert not interpreted(program, INTERPRETED), str(program)
    check(programs, shipped.problems(programs))


@pytest.mark.skipif(not sanitizer_compiler(), reason="no gcc with sanitizers here")
@pytest.mark.parametrize("quarter", range(4))
def test_kinds_of_declaration_under_sanitizers(quarter: int, tmp_path: Path) -> None:
    programs = [program for kind in sorted(ALL_KINDS)[quarter::4] for program in seeded(kind, 50, 8)]
    check(programs, sanitized_problems(programs, tmp_path, sanitizer_compiler()))


@dataclass(frozen=True)
class Spoiled(Program):
    """Does something before it begins."""

    statement: str

    @cached_property
    def source(self) -> CSource:
        good = super().source
        return replace(good, text=good.text.replace("parallel_for, void *pool) {", "parallel_for, void *pool) {\n  " + self.statement, 1))


def spoiled(program: Program, statement: str) -> Program:
    return Spoiled(program.case, program.sketch, program.row, program.target, program.entry, statement)


WRONG = {
    "crash": "*(volatile int *)8 = 1;",
    "wrote before the start of": "((volatile int *)args[2])[-1] = 1;",
    "elements wrong": "return;",
    "does not compile": "nonsense;",
}


def test_a_wrong_program_is_told_from_the_others(bench: Bench) -> None:
    """The test tested: what is wrong is found, and the programs behind it still run."""
    good = [program for program in seeded("matmul", 3, 40) if program.case.dag.outputs[0].dtype == "int32"][:5]
    for kind, statement in WRONG.items():
        found = bench.problems([good[0], spoiled(good[1], statement), *good[2:]])
        assert [bool(problem) for problem in found] == [False, True, False, False, False]
        assert kind in found[1], found[1]


@pytest.mark.skipif(not sanitizer_compiler(), reason="no gcc with sanitizers here")
def test_a_read_out_of_bounds_is_told_from_the_others(tmp_path: Path) -> None:
    good = seeded("matmul", 3, 4)
    statement = "volatile float far = ((float *)args[0])[1000]; (void)far;"
    found = sanitized_problems([good[0], spoiled(good[1], statement), *good[2:]], tmp_path, sanitizer_compiler())
    assert [bool(problem) for problem in found] == [False, True, False, False]
    assert "heap-buffer-overflow" in found[1]
