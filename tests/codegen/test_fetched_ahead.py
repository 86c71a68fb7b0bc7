"""Constants are fetched a panel ahead: all of the next one, spread over the steps of the present one, and only where that pays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product as all_of

from ansor import te
from ansor.codegen.fetched_ahead import LEAST_BYTES, LINE, Panel, panels
from ansor.codegen.generate import Machine, generate
from ansor.ir.dag import Dag
from ansor.ir.loops import For, Loops, stores
from ansor.ir.simplify import simplified
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Pack, Reorder, Split, Step, Vectorize
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


def found(tensors: list[Tensor], steps: Sequence[Step], tile: int = 2) -> list[Panel]:
    """The panels of a program whose innermost loops, `tile` of them, are a register tile."""
    ((loops, store),) = stores(simplified(lowered(tensors, steps)).body)
    return panels(store, loops[: len(loops) - tile], loops[len(loops) - tile :])


def names(loops: Sequence[For]) -> list[str]:
    return [loop.var.name for loop in loops]


def test_a_panel_is_what_is_read_again_and_again() -> None:
    (panel,) = found(product(), tiled())
    assert (names(panel.passes), names(panel.steps), panel.size) == (["c_i_0"], ["c_k"], INNER * 16 * 4)
    (panel,) = found(product(), (Split("c", "k", (32,), 2), *tiled(("k_0", "j_0", "i_0", "k_1", "i_1", "j_1"))))
    assert (names(panel.passes), names(panel.steps), panel.size) == (["c_i_0"], ["c_k_1"], 32 * 16 * 4)
    parts = (Split("c", "i", (8,), 2), Split("c", "j", (2, 16), 3), Split("c", "k", (32,), 2))
    order = Reorder("c", ("j_0", "i_0", "j_1", "k_0", "k_1", "i_1", "j_2"))
    (panel,) = found(product(), (*parts, order, Vectorize("c", "j_2"), Pack("c", "b")))
    assert (names(panel.passes), names(panel.steps), panel.size) == (["c_i_0"], ["c_j_1", "c_k_0", "c_k_1"], 2 * INNER * 16 * 4)


def test_the_steps_of_a_panel_fetch_all_of_the_next_one() -> None:
    for rows, height in ((64, 8), (56, 8), (96, 6), (16, 8)):
        (line,) = re.findall(r"__builtin_prefetch\(\(const char \*\)&b\[c_j_0 \* 2048\] \+ (.*), 0, [23]\);", text(product(rows), tiled(height=height)))
        places = sorted(eval(line, {"c_i_0": i, "c_k": k}) for i, k in all_of(range(rows // height), range(INNER)))  # arithmetic of our own
        assert set(range(INNER * 16 * 4, 2 * INNER * 16 * 4, LINE)) <= set(places) and places[-1] < 3 * INNER * 16 * 4


def test_nothing_is_fetched_where_it_does_not_pay() -> None:
    assert "prefetch" in text(product(), tiled())
    small = product(columns=LEAST_BYTES // (8 * INNER))
    for tensors, steps in (
        (small, tiled()),
        (product(constant=False), tiled(packed=False)),
        (product(), tiled(packed=False)),
        (product(rows=8), tiled()),  # each number is read once
        (product(), tiled(height=4)),  # few accumulators
        (product(), tiled(("i_0", "j_0", "k", "i_1", "j_1"))),  # all constants are read, and then read again
    ):
        assert "prefetch" not in text(tensors, steps)


def test_what_is_needed_soon_goes_into_the_second_cache() -> None:
    """The first one waits for few lines at a time."""
    assert text(product(rows=16), tiled()).count(", 0, 2);") == 1 and text(product(rows=32), tiled()).count(", 0, 3);") == 1


def test_boards_without_a_system_fetch_nothing() -> None:
    bare = replace(WIDE, dialect=replace(WIDE.dialect, hosted=False, pool=False))
    assert "prefetch" not in text(product(), tiled(), bare)
