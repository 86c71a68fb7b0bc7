"""Packed constants are prefetched: all of the next panel, spread over the steps of the present one, and what is a fixed distance ahead, only where it pays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product as all_of
from pathlib import Path

import numpy as np
import pytest

from ansor import te
from ansor.codegen.generate import Machine, generate
from ansor.codegen.prefetch import AHEAD, LEAST_BYTES, LINE, PARTS, Panel, constants, panel_of
from ansor.ir.dag import Dag
from ansor.ir.loops import For, Loops, stores
from ansor.ir.simplify import simplified
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Pack, Parallel, Reorder, Split, Step, Tensorize, Vectorize
from ansor.targets.base import parse_target
from ansor.te.tensor import Tensor
from tests.programs import Program, case_of, sanitized_problems, sanitizer_compiler

ROWS, INNER, COLUMNS = 64, 128, 256
WIDE = Machine(64)


def product(rows: int = ROWS, inner: int = INNER, columns: int = COLUMNS, constant: bool = True) -> list[Tensor]:
    a, b, r = te.placeholder((rows, inner), name="a"), te.placeholder((inner, columns), name="b", constant=constant), te.reduce_axis((0, inner), name="k")
    return [a, b, te.compute((rows, columns), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="c")]


def tiled(order: Sequence[str] = ("j_0", "i_0", "k", "i_1", "j_1"), height: int = 8, packed: bool = True) -> tuple[Step, ...]:
    steps = (Split("c", "i", (height,), 2), Split("c", "j", (16,), 2), Reorder("c", tuple(order)), Vectorize("c", "j_1"))
    return (*steps, Pack("c", "b")) if packed else steps


def lowered(tensors: list[Tensor], steps: Sequence[Step]) -> Loops:
    return Sketch(Dag(tensors)).then(*steps).lower_row(())


def text(tensors: list[Tensor], steps: Sequence[Step], machine: Machine = WIDE) -> str:
    return generate(lowered(tensors, steps), machine, "program").text


def found(tensors: list[Tensor], steps: Sequence[Step], tile: int = 2, shared: int = 0) -> Panel | None:
    """The panel of a program whose innermost loops, `tile` of them, are a register tile, and whose outermost loops, `shared` of them, threads share."""
    ((loops, store),) = stores(simplified(lowered(tensors, steps)).body)
    (read,) = constants(store, [loop.var for loop in loops[len(loops) - tile :]])
    return panel_of(read, loops[:shared], loops[shared : len(loops) - tile])


def size_of(panel: Panel | None) -> tuple[list[str], list[str], int]:
    assert panel is not None
    return names(panel.passes), names(panel.steps), panel.size


def names(loops: Sequence[For]) -> list[str]:
    return [loop.var.name for loop in loops]


def test_a_panel_is_what_is_read_again_and_again() -> None:
    assert size_of(found(product(), tiled())) == (["c_i_0"], ["c_k"], INNER * 16 * 4)
    parts = (Split("c", "k", (32,), 2), *tiled(("k_0", "j_0", "i_0", "k_1", "i_1", "j_1")))
    assert size_of(found(product(), parts)) == (["c_i_0"], ["c_k_1"], 32 * 16 * 4)
    parts = (Split("c", "i", (8,), 2), Split("c", "j", (2, 16), 3), Split("c", "k", (32,), 2))
    order = Reorder("c", ("j_0", "i_0", "j_1", "k_0", "k_1", "i_1", "j_2"))
    panel = found(product(), (*parts, order, Vectorize("c", "j_2"), Pack("c", "b")))
    assert size_of(panel) == (["c_i_0"], ["c_j_1", "c_k_0", "c_k_1"], 2 * INNER * 16 * 4)


def test_there_is_no_panel_without_passes_or_without_another_one_behind_it() -> None:
    assert found(product(rows=8), tiled()) is None  # one pass
    assert found(product(), tiled(("i_0", "j_0", "k", "i_1", "j_1"))) is None  # all constants are read before any is read again
    assert found(product(columns=16, inner=1024), tiled()) is None  # all constants are one panel


def test_threads_share_no_passes() -> None:
    assert size_of(found(product(), tiled(), shared=1)) == (["c_i_0"], ["c_k"], INNER * 16 * 4)
    assert found(product(), tiled(), shared=2) is None
    steps = (*tiled(), Parallel("c", 2))
    assert of_panels(text(product(), steps)) and not of_panels(text(product(), steps, replace(WIDE, threads=2)))


def of_panels(program: str) -> list[tuple[str, str]]:
    """How far ahead the statements of panels prefetch, and into which cache."""
    return re.findall(r"__builtin_prefetch\(\(const void \*\)\(\(__UINTPTR_TYPE__\)&b\[c_j_0 \* 2048\] \+ (\(\(.*)\), 0, ([23])\);", program)


def test_the_steps_of_a_panel_prefetch_all_of_the_next_one() -> None:
    """Also those of a last pass that is shorter: 12 rows are 8 and 4, 50 are seven times 7 and 1."""
    size = INNER * 16 * 4
    for rows, height in ((64, 8), (56, 8), (96, 6), (16, 8), (12, 8), (50, 7)):
        passes, program = -(-rows // height), text(product(rows), tiled(height=height))
        found = [ahead for ahead, _ in of_panels(program)]
        assert len(found) == 1 + (rows % height > 0) and len(set(found)) == 1
        first = found[0]
        places = {eval(first, {"c_i_0": i, "c_k": k}) for i, k in all_of(range(passes), range(INNER))}  # arithmetic of our own
        assert set(range(size, 2 * size, LINE)) <= places and max(places) <= 2 * size + passes * INNER // PARTS * LINE


def test_what_is_needed_soon_goes_into_the_second_cache() -> None:
    """The first one tracks few outstanding misses."""
    assert [of_panels(text(product(rows), tiled()))[0][1] for rows in (16, 32)] == ["2", "3"]


def test_a_step_prefetches_a_fixed_distance_ahead() -> None:
    program = text(product(), tiled())
    assert f"&b[c_j_0 * 2048 + c_k * 16] + {AHEAD}), 0, 2);" in program and program.count("prefetch") == 2
    assert [text(*one).count("prefetch") for one in ((product(rows=8), tiled()), (product(), tiled(("i_0", "j_0", "k", "i_1", "j_1"))))] == [1, 1]
    wide = (Split("c", "i", (4,), 2), Split("c", "j", (32,), 2), Reorder("c", ("j_0", "i_0", "k", "i_1", "j_1")), Vectorize("c", "j_1"), Pack("c", "b"))
    assert [f"+ {AHEAD + skipped}), 0, 2);" in text(product(rows=4), wide) for skipped in (0, LINE)] == [True, True]


def test_nothing_is_prefetched_where_it_does_not_pay() -> None:
    for tensors, steps in (
        (product(columns=LEAST_BYTES // (8 * INNER)), tiled()),
        (product(constant=False), tiled(packed=False)),
        (product(), tiled(packed=False)),
        (product(), tiled(height=4)),  # a step has few accumulators
    ):
        assert "prefetch" not in text(tensors, steps)


def test_boards_without_a_system_prefetch_nothing() -> None:
    bare = replace(WIDE, dialect=replace(WIDE.dialect, hosted=False, pool=False))
    assert "prefetch" not in text(product(), tiled(), bare)


def test_instructions_prefetch_their_constants_too() -> None:
    data, weights = te.placeholder((ROWS, INNER * 4), "int8", name="a"), te.placeholder((INNER * 4, COLUMNS), "int8", name="b", constant=True)
    parts = (Split("c", "i", (8,), 2), Split("c", "j", (16,), 2), Split("c", "k", (4,), 2))
    order = Reorder("c", ("j_0", "i_0", "k_0", "i_1", "j_1", "k_1"))
    steps = (Pack("c", "b"), *parts, order, Tensorize("c", "j_1", "k_1", "avx512_dpbusd_s8s8"))
    program = text([data, weights, te.nn.matmul(data, weights, out_dtype="int32", name="c")], steps)
    ((ahead, _),) = re.findall(r"\+ (\(\(.*)\), 0, ([23])\);", program)
    assert ahead.endswith(f"+ {INNER * 16 * 4}") and "c_i_0" in ahead and "c_k_0" in ahead and f"+ {AHEAD}), 0, 2);" in program


@pytest.mark.compiler
def test_programs_that_prefetch_are_clean_under_sanitizers(tmp_path: Path) -> None:
    gcc = sanitizer_compiler()
    if not gcc:
        pytest.skip("no gcc with sanitizers")
    rng, programs = np.random.default_rng(0), []
    for rows in (16, 12):
        case = case_of(product(rows), a=rng.standard_normal((rows, INNER), np.float32), b=rng.standard_normal((INNER, COLUMNS), np.float32))
        programs.append(Program(case, Sketch(case.dag).then(*tiled()), (), parse_target("cpu -mcpu=znver4 -threads=1"), "program"))
    assert all("prefetch" in program.source.text for program in programs)
    assert sanitized_problems(programs, tmp_path, gcc) == [""] * len(programs)
