"""Constants are fetched a panel ahead: all of the next one, spread over the steps of the present one, and only where that pays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product as all_of

from ansor import te
from ansor.codegen.fetched_ahead import AHEAD, LEAST_BYTES, LINE, Panel, constants, panel_of
from ansor.codegen.generate import Machine, generate
from ansor.ir.dag import Dag
from ansor.ir.loops import For, Loops, stores
from ansor.ir.simplify import simplified
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Pack, Reorder, Split, Step, Tensorize, Vectorize
from ansor.te.tensor import Tensor

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


def found(tensors: list[Tensor], steps: Sequence[Step], tile: int = 2) -> Panel:
    """The panel of a program whose innermost loops, `tile` of them, are a register tile."""
    ((loops, store),) = stores(simplified(lowered(tensors, steps)).body)
    (read,) = constants(store, [loop.var for loop in loops[len(loops) - tile :]])
    panel = panel_of(read, loops[: len(loops) - tile])
    assert panel is not None
    return panel


def names(loops: Sequence[For]) -> list[str]:
    return [loop.var.name for loop in loops]


def test_a_panel_is_what_is_read_again_and_again() -> None:
    panel = found(product(), tiled())
    assert (names(panel.passes), names(panel.steps), panel.size) == (["c_i_0"], ["c_k"], INNER * 16 * 4)
    panel = found(product(), (Split("c", "k", (32,), 2), *tiled(("k_0", "j_0", "i_0", "k_1", "i_1", "j_1"))))
    assert (names(panel.passes), names(panel.steps), panel.size) == (["c_i_0"], ["c_k_1"], 32 * 16 * 4)
    parts = (Split("c", "i", (8,), 2), Split("c", "j", (2, 16), 3), Split("c", "k", (32,), 2))
    order = Reorder("c", ("j_0", "i_0", "j_1", "k_0", "k_1", "i_1", "j_2"))
    panel = found(product(), (*parts, order, Vectorize("c", "j_2"), Pack("c", "b")))
    assert (names(panel.passes), names(panel.steps), panel.size) == (["c_i_0"], ["c_j_1", "c_k_0", "c_k_1"], 2 * INNER * 16 * 4)


def of_panels(program: str) -> list[str]:
    """How far ahead a panel's statements fetch, and into which cache."""
    return re.findall(r"__builtin_prefetch\(\(const char \*\)&b\[c_j_0 \* 2048\] \+ (.*, 0, [23])\);", program)


def test_the_steps_of_a_panel_fetch_all_of_the_next_one() -> None:
    for rows, height in ((64, 8), (56, 8), (96, 6), (16, 8)):
        (line,) = of_panels(text(product(rows), tiled(height=height)))
        places = sorted(eval(line, {"c_i_0": i, "c_k": k})[0] for i, k in all_of(range(rows // height), range(INNER)))  # arithmetic of our own
        assert set(range(INNER * 16 * 4, 2 * INNER * 16 * 4, LINE)) <= set(places) and places[-1] < 3 * INNER * 16 * 4


def test_what_is_needed_soon_goes_into_the_second_cache() -> None:
    """The first one waits for few lines at a time."""
    assert of_panels(text(product(rows=16), tiled()))[0].endswith(", 2") and of_panels(text(product(rows=32), tiled()))[0].endswith(", 3")


def test_a_step_fetches_what_is_behind_its_own_constants() -> None:
    program = text(product(), tiled())
    assert f"__builtin_prefetch((const char *)&b[c_j_0 * 2048 + c_k * 16] + {AHEAD}, 0, 2);" in program and program.count("prefetch") == 2
    once = (product(rows=8), tiled()), (product(), tiled(("i_0", "j_0", "k", "i_1", "j_1")))  # no panel is read twice in a row
    assert [text(*one).count("prefetch") for one in once] == [1, 1]


def test_nothing_is_fetched_where_it_does_not_pay() -> None:
    for tensors, steps in (
        (product(columns=LEAST_BYTES // (8 * INNER)), tiled()),
        (product(constant=False), tiled(packed=False)),
        (product(), tiled(packed=False)),
        (product(), tiled(height=4)),  # few accumulators
    ):
        assert "prefetch" not in text(tensors, steps)


def test_boards_without_a_system_fetch_nothing() -> None:
    bare = replace(WIDE, dialect=replace(WIDE.dialect, hosted=False, pool=False))
    assert "prefetch" not in text(product(), tiled(), bare)


def test_instructions_fetch_panels_too() -> None:
    data, weights = te.placeholder((ROWS, INNER * 4), "int8", name="a"), te.placeholder((INNER * 4, COLUMNS), "int8", name="b", constant=True)
    parts = (Split("c", "i", (8,), 2), Split("c", "j", (16,), 2), Split("c", "k", (4,), 2))
    order = Reorder("c", ("j_0", "i_0", "k_0", "i_1", "j_1", "k_1"))
    steps = (Pack("c", "b"), *parts, order, Tensorize("c", "j_1", "k_1", "avx512_dpbusd_s8s8"))
    (line,) = re.findall(r"__builtin_prefetch.*>>.*", text([data, weights, te.nn.matmul(data, weights, out_dtype="int32", name="c")], steps))
    assert f"+ {INNER * 16 * 4}, 0, 3" in line and "c_i_0" in line and "c_k_0" in line
