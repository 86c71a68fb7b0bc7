"""A tile prefetches the lines that are read beside its results, those lines only, and only where they have time to arrive."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product as all_of
from pathlib import Path

import numpy as np
import pytest

from ansor import te
from ansor.codegen.generate import Machine, generate
from ansor.codegen.prefetch_beside import LEAST_WORK, LINE, reads_beside
from ansor.codegen.values import flat_index
from ansor.ir.dag import Dag
from ansor.ir.linear import Linear, Var
from ansor.ir.loops import Access, For, Store, stores
from ansor.ir.simplify import simplified
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import ComputeAt, Fuse, Reorder, Split, Step, Vectorize
from ansor.targets.base import parse_target
from ansor.te.expr import Expr
from ansor.te.fold import walk
from ansor.te.tensor import Tensor
from tests.programs import Program, case_of, sanitized_problems, sanitizer_compiler

ROWS, INNER, COLUMNS = 24, 64, 80
HEIGHT, WIDTH = 4, 16
TILE = Machine(32)

Rest = Callable[[Tensor, Tensor, Expr, Expr], Expr]
"""What is added to a product, of a residual and a bias, at a row and a column."""


def residual(z: Tensor, b: Tensor, i: Expr, j: Expr) -> Expr:
    return z[i, j] + b[j]


def window(z: Tensor, b: Tensor, i: Expr, j: Expr) -> Expr:
    found: Expr = b[j]
    for p, q in all_of(range(3), range(3)):
        found = found + z[i + p, j + q]
    return found


def declared(rest: Rest = residual, rows: int = ROWS, columns: int = COLUMNS, inner: int = INNER, shape: tuple[int, ...] | None = None) -> list[Tensor]:
    x, w = te.placeholder((rows, inner), name="x"), te.placeholder((inner, columns), name="w")
    z, b, r = te.placeholder(shape or (rows, columns), name="z"), te.placeholder((columns,), name="b"), te.reduce_axis((0, inner), name="k")
    y = te.compute((rows, columns), lambda i, j: te.sum(x[i, r] * w[r, j], axis=r), name="y")
    return [x, w, z, b, te.compute((rows, columns), lambda i, j: y[i, j] + rest(z, b, i, j), name="o")]


def tiled(height: int = HEIGHT, width: int = WIDTH, inside: Sequence[Step] = (Reorder("y", ("k", "i", "j")),)) -> tuple[Step, ...]:
    """inside: the order of the product's loops."""
    return (
        Split("o", "i", (height,), 2), Split("o", "j", (width,), 2), Reorder("o", ("i_0", "j_0", "i_1", "j_1")), *inside, ComputeAt("y", "o", "j_0"),
        Vectorize("y", "j"), Vectorize("o", "j_1"),
    )  # fmt: skip


IN_PARTS = (Split("y", "k", (8,), 2), Split("y", "i", (2,), 2), Reorder("y", ("k_0", "i_0", "k_1", "i_1", "j")))
FUSED = (Reorder("y", ("k", "i", "j")), Fuse("y", ("i", "j")))
IN_TILES = (Split("y", "i", (2,), 2), Reorder("y", ("i_0", "k", "i_1", "j")))


def text(tensors: list[Tensor], steps: Sequence[Step], machine: Machine = TILE) -> str:
    return generate(Sketch(Dag(tensors)).then(*steps).lower_row(()), machine, "program").text


def prefetched(tensors: list[Tensor], steps: Sequence[Step] = (), machine: Machine = TILE) -> list[tuple[str, str, int]]:
    """Each tensor that is prefetched, the place of the first element as C, and the bytes from there."""
    found = re.findall(r"__builtin_prefetch\(.*\)(\w+) \+ \(__UINTPTR_TYPE__\)\((.*)\) \* 4 \+ (\d+)\), 0, 3\);", text(tensors, steps or tiled(), machine))
    return [(name, place, int(byte)) for name, place, byte in found]


def test_a_residual_is_prefetched_and_a_bias_is_not() -> None:
    assert prefetched(declared()) == [("z", f"o_i_0 * {HEIGHT * COLUMNS} + o_j_0 * {WIDTH}", row * COLUMNS * 4) for row in range(HEIGHT)]


def test_a_prefetch_is_before_the_sums() -> None:
    program = text(declared(), tiled())
    assert program.index("for (long o_j_0") < program.index("prefetch") < program.index("for (long y_k") < program.rindex("&z[")


def split_tile(tensors: list[Tensor], steps: Sequence[Step]) -> tuple[For, Sequence[For], Store, Sequence[For], Store]:
    """The loop around a tile and what is read beside it, and both nests with their stores."""
    (node,) = simplified(Sketch(Dag(tensors)).then(*steps).lower_row(())).body
    (path, tile), (other_path, other) = stores((node,))
    depth = next(k for k, (one, two) in enumerate(zip(path, other_path, strict=False)) if one is not two)
    return path[depth - 1], path[depth:], tile, other_path[depth:], other


def value(place: Linear, at: dict[Var, int]) -> int:
    return int(place.const) + sum(int(factor) * at[atom] for atom, factor in place.terms if isinstance(atom, Var))


@pytest.mark.parametrize("steps", [tiled(), tiled(3, 8), tiled(2, 32), tiled(1, 16), tiled(6, 20)])
@pytest.mark.parametrize(
    ("rest", "shape"),
    [
        (residual, None),
        (lambda z, b, i, j: z[j, i], (COLUMNS, ROWS)),
        (lambda z, b, i, j: z[i + 1, 2 * j + 3] * b[j], (ROWS + 1, 2 * COLUMNS + 3)),
        (lambda z, b, i, j: z[i, 0, j] - z[i, 1, j], (ROWS, 2, COLUMNS)),
    ],
)
def test_all_lines_that_are_read_are_prefetched_and_no_others(steps: Sequence[Step], rest: Rest, shape: tuple[int, ...] | None) -> None:
    parent, loops, tile, around, other = split_tile(declared(rest, shape=shape), steps)
    unrolled = [loop.var for loop in loops if loop.kind != "reduce"]
    found = reads_beside(tile, parent, unrolled)
    outer = [atom for one in found for atom, _ in one.first.terms if isinstance(atom, Var)]
    reads = [node for node in walk(other.value) if isinstance(node, Access) and node.buffer.name == "z"]
    assert len(found) == len(reads)
    for at in ({var: k % int(var.extent) for var in outer} for k in (0, 1, 2)):
        lines = {(4 * value(one.first, at) + line) for one in found for line in one.lines}
        for read, one in zip(reads, found, strict=True):
            first = 4 * value(one.first, at)
            read_here = {
                4 * value(flat_index(read.buffer, read.index), {**at, **dict(zip((loop.var for loop in around), inner, strict=True))})
                for inner in all_of(*(range(int(loop.var.extent)) for loop in around))
            }
            assert {(place - first) // LINE * LINE + first for place in read_here} <= lines
            assert all(any(line <= place < line + LINE for place in read_here) for line in {first + line for line in one.lines})


def test_nothing_is_prefetched_where_it_would_be_repeated_or_come_too_late() -> None:
    for tensors, steps in (
        (declared(lambda z, b, i, j: b[j]), tiled()),
        (declared(lambda z, b, i, j: z[i % 4, j], shape=(4, COLUMNS)), tiled()),  # not another element for each result
        (declared(inner=LEAST_WORK // 4), tiled()),  # two vectors for each line: half the work that it takes
        (declared(), tiled(inside=IN_PARTS)),  # each tile is computed eight times
        (declared(), (*tiled()[:3], *FUSED, ComputeAt("y", "o", "j_0"))),  # the loop of the tile is both a row and a column
        (declared(window, shape=(ROWS + 2, COLUMNS + 2)), tiled()),  # too many lines
        (declared(), tiled(inside=IN_TILES)),  # other tiles follow before the residual is read
    ):
        assert not prefetched(tensors, steps)
    assert prefetched(declared(inner=LEAST_WORK // 2))


def test_boards_without_a_system_prefetch_nothing() -> None:
    assert not prefetched(declared(), machine=replace(TILE, dialect=replace(TILE.dialect, hosted=False, pool=False)))


@pytest.mark.compiler
@pytest.mark.parametrize(("rows", "columns"), [(24, 80), (23, 77)])
def test_programs_that_prefetch_are_clean_under_sanitizers(tmp_path: Path, rows: int, columns: int) -> None:
    gcc = sanitizer_compiler()
    if not gcc:
        pytest.skip("no gcc with sanitizers")
    rng = np.random.default_rng(0)
    case = case_of(
        declared(rows=rows, columns=columns), x=rng.standard_normal((rows, INNER), np.float32), w=rng.standard_normal((INNER, columns), np.float32),
        z=rng.standard_normal((rows, columns), np.float32), b=rng.standard_normal(columns, np.float32),
    )  # fmt: skip
    program = Program(case, Sketch(case.dag).then(*tiled()), (), parse_target("cpu -mcpu=znver3 -threads=1"), "program")
    assert "prefetch" in program.source.text
    assert sanitized_problems([program], tmp_path, gcc) == [""]
