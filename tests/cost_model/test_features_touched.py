"""What statements touch, against counting every iteration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ansor import te
from ansor.cost_model.buffer_features import Statement, reuse_of, statements_of
from ansor.cost_model.cache_sets import FirstCache
from ansor.cost_model.touched import Index, accesses
from ansor.ir.dag import Dag
from ansor.ir.interpreter import index_value
from ansor.ir.linear import Var
from ansor.ir.loops import Buffer
from ansor.schedule.choice import tile_choice
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import CacheWrite, ComputeAt, FollowSplit, Fuse, Pack, Reorder, Split
from ansor.te.tensor import Tensor

LINE = 16  # bytes: four elements
ELEMENT = 4
Place = tuple[int, ...]


def matmul(n: int, m: int, k: int) -> list[Tensor]:
    a = te.placeholder((n, k), name="A")
    b = te.placeholder((k, m), name="B", constant=True)
    r = te.reduce_axis((0, k), name="k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]


def tiled() -> Sketch:
    choices = (tile_choice("i", 8, 2), tile_choice("j", 8, 2), tile_choice("k", 4, 1))
    return Sketch(Dag(matmul(8, 8, 4))).then(
        Split("C", "i", "i", 3), Split("C", "j", "j", 3), Split("C", "k", "k", 2), Reorder("C", ("i_0", "j_0", "k_0", "i_1", "j_1", "k_1", "i_2", "j_2")),
        choices=choices,
    )


def cached() -> Sketch:
    choices = (tile_choice("i", 8, 2), tile_choice("j", 8, 2), tile_choice("k", 4, 1))
    return Sketch(Dag(matmul(8, 8, 4))).then(
        CacheWrite("C"), Split("C_local", "i", "i", 3), Split("C_local", "j", "j", 3), Split("C_local", "k", "k", 2), Pack("C_local", "B"),
        Reorder("C_local", ("i_0", "j_0", "k_0", "i_1", "j_1", "k_1", "j_2", "i_2")), FollowSplit("C", "i", "i", 2), FollowSplit("C", "j", "j", 2),
        Reorder("C", ("i_0", "j_0", "i_1", "j_1")), ComputeAt("C_local", "C", "j_0"), choices=choices,
    )


def strided_windows(stride: int, taps: int) -> Sketch:
    data = te.placeholder((4, 4 * stride + taps - 1, 8 * stride + taps - 1), name="X")
    c, y, x = te.reduce_axis((0, 4), name="c"), te.reduce_axis((0, taps), name="y"), te.reduce_axis((0, taps), name="x")
    out = te.compute((4, 8), lambda h, w: te.max(data[c, h * stride + y, w * stride + x], axis=(c, y, x)), name="M")
    choices = (tile_choice("h", 4, 1), tile_choice("w", 8, 2), tile_choice("c", 4, 1))
    order = ["h_0", "w_0", "c_0", *(["y"] if taps > 1 else []), "w_1", "h_1", *(["x"] if taps > 1 else []), "c_1", "w_2"]
    extra = [] if taps > 1 else ["y", "x"]
    return Sketch(Dag([data, out])).then(
        Split("M", "h", "h", 2), Split("M", "w", "w", 3), Split("M", "c", "c", 2), Reorder("M", (*order, *extra)), choices=choices
    )


def stencil() -> Sketch:
    data = te.placeholder((6, 10), name="X")
    out = te.compute((4, 8), lambda i, j: data[i, j] + data[i + 1, j + 1] + data[i + 2, j + 2] + data[i, j] * 2.0, name="Y")
    return Sketch(Dag([data, out])).then(Split("Y", "j", "j", 2), Reorder("Y", ("j_0", "i", "j_1")), choices=(tile_choice("j", 8, 1),))


def fused() -> Sketch:
    data = te.placeholder((4, 8), name="X")
    out = te.compute((4, 8), lambda i, j: data[i, j] * 2.0, name="Y")
    choices = (tile_choice("i", 4, 1), tile_choice("j", 8, 1))
    return Sketch(Dag([data, out])).then(
        Split("Y", "i", "i", 2), Split("Y", "j", "j", 2), Reorder("Y", ("i_0", "j_0", "i_1", "j_1")), Fuse("Y", ("i_0", "j_0")), choices=choices
    )


def diagonal() -> Sketch:
    data = te.placeholder((8, 8), name="X")
    out = te.compute((8, 4), lambda i, j: data[i, i], name="Y")
    return Sketch(Dag([data, out])).then(Split("Y", "i", "i", 2), choices=(tile_choice("i", 8, 1),))


def grouped() -> Sketch:
    data = te.placeholder((4, 8), name="X")
    out = te.compute((16, 8), lambda i, j: data[i // 4, j] * 2.0, name="Y")
    return Sketch(Dag([data, out])).then(Split("Y", "i", "i", 2), Split("Y", "j", "j", 2), choices=(tile_choice("i", 16, 1), tile_choice("j", 8, 1)))


def grouped_neighbours() -> Sketch:
    """Each read has its own quotient; all three are equal."""
    data = te.placeholder((4, 10), name="X")
    out = te.compute((16, 8), lambda i, j: data[i // 4, j] + data[i // 4, j + 1] + data[i // 4, j], name="Y")
    return Sketch(Dag([data, out])).then(Split("Y", "i", "i", 2), Split("Y", "j", "j", 2), choices=(tile_choice("i", 16, 1), tile_choice("j", 8, 1)))


def grouped_far_apart() -> Sketch:
    data = te.placeholder((32, 8), name="X")
    out = te.compute((16, 8), lambda i, j: data[i // 4, j] + data[i // 4 + 24, j], name="Y")
    return Sketch(Dag([data, out])).then(Split("Y", "i", "i", 2), Split("Y", "j", "j", 2), choices=(tile_choice("i", 16, 1), tile_choice("j", 8, 1)))


def grouped_strides() -> Sketch:
    """The reads share elements, but move along j at different speeds: they count as two."""
    data = te.placeholder((4, 32), name="X")
    return Sketch(Dag([data, te.compute((16, 8), lambda i, j: data[i // 4, j] + data[i // 4, j * 4], name="Y")]))


def repeated() -> Sketch:
    data = te.placeholder((4, 8), name="X")
    out = te.compute((16, 8), lambda i, j: data[i % 4, j] * 2.0, name="Y")
    return Sketch(Dag([data, out])).then(Split("Y", "i", "i", 2), choices=(tile_choice("i", 16, 1),))


SKETCHES = {"grouped": grouped, "grouped neighbours": grouped_neighbours, "grouped far apart": grouped_far_apart, "repeated": repeated,
            "tiled": tiled, "cached": cached, "windows": lambda: strided_windows(1, 3), "strided": lambda: strided_windows(2, 1),
            "strided windows": lambda: strided_windows(2, 3), "fused": fused, "diagonal": diagonal}


def programs(sketch: Sketch, count: int = 12) -> list[list[Statement]]:
    generator = np.random.default_rng(3)
    return [statements_of(sketch.lower_row([int(generator.integers(size)) for size in sketch.sizes]), FirstCache(LINE)) for _ in range(count)]


def places(statement: Statement, indices: list[Index], boundary: int, outer: dict[Var, int]) -> list[Place]:
    """Every place the loops inside `boundary` read or write, in order, with the outer loops standing at `outer`."""
    inner = statement.nest.loops[boundary:]
    values = {loop.var: 0 for loop in statement.nest.path} | outer
    found = []
    for position in itertools.product(*(range(int(loop.var.extent)) for loop in inner)):
        values |= {loop.var: value for loop, value in zip(inner, position, strict=True)}
        found += [tuple(index_value(one, {}, values) for one in index) for index in indices]
    return found


def line_of(statement: Statement, buffer: Buffer, place: Place) -> int:
    layout = statement.layouts[buffer]
    return int(sum(position * float(stride) for position, stride in zip(place, layout.strides, strict=True))) * ELEMENT // LINE


@pytest.mark.parametrize("name", SKETCHES)
def test_elements_touched_by_inner_loops(name: str) -> None:
    for program in programs(SKETCHES[name]()):
        for statement in program:
            for buffer, indices in accesses(statement.nest.store).items():
                for boundary, elements in enumerate(statement.footprints[buffer].elements):
                    counted = len(set(places(statement, indices, boundary, {})))
                    assert float(np.max(elements)) == counted, (statement.nest.store.stage, buffer.name, boundary)


def test_reads_that_move_at_different_speeds_through_a_division_count_apart() -> None:
    (statement,) = statements_of(grouped_strides().lower_row(()), FirstCache(LINE))
    (data,) = [buffer for buffer in statement.footprints if buffer.name == "X"]
    assert [float(elements) for elements in statement.footprints[data].elements] == [64, 16, 2]


@pytest.mark.parametrize("name", SKETCHES)
def test_moves_is_where_the_address_changes_along_a_loop(name: str) -> None:
    for program in programs(SKETCHES[name]()):
        for statement in program:
            for buffer, indices in accesses(statement.nest.store).items():
                for level, moves in enumerate(statement.footprints[buffer].moves):
                    assert bool(np.max(moves)) == changes(statement, indices, level), (statement.nest.store.stage, buffer.name, level)


def changes(statement: Statement, indices: list[Index], level: int) -> bool:
    """Whether any iteration of a loop reads or writes elsewhere than its first, the others standing anywhere."""
    loops = statement.nest.loops
    for position in itertools.product(*(range(int(loop.var.extent)) for loop in loops)):
        values = {loop.var: 0 for loop in statement.nest.path} | {loop.var: value for loop, value in zip(loops, position, strict=True)}
        first = values | {loops[level].var: 0}
        if any(index_value(one, {}, values) != index_value(one, {}, first) for index in indices for one in index):
            return True
    return False


@pytest.mark.parametrize("name", ["tiled", "cached", "fused", "grouped"])
def test_lines_touched_and_visited(name: str) -> None:
    for program in programs(SKETCHES[name]()):
        for statement in program:
            for buffer, indices in accesses(statement.nest.store).items():
                print_ = statement.footprints[buffer]
                last = float(np.max(statement.layouts[buffer].shape[-1]))
                if last % (LINE // ELEMENT) and len(statement.layouts[buffer].shape) > 1:
                    continue  # rows that start inside a line
                everything = {line_of(statement, buffer, place) for place in places(statement, indices, 0, {})}
                assert float(np.max(print_.unique_lines)) == len(everything), (statement.nest.store.stage, buffer.name)
                assert float(np.max(print_.lines)) == visits(statement, buffer, indices), (statement.nest.store.stage, buffer.name)


def visits(statement: Statement, buffer: Buffer, indices: list[Index]) -> int:
    """Lines of each run of the innermost loop that moves the address, one run after the other."""
    moving = [level for level, moves in enumerate(statement.footprints[buffer].moves) if np.any(moves)]
    if not moving:
        return 1
    outer = statement.nest.loops[: moving[-1]]
    total = 0
    for position in itertools.product(*(range(int(loop.var.extent)) for loop in outer)):
        run = places(statement, indices, moving[-1], {loop.var: value for loop, value in zip(outer, position, strict=True)})
        total += len({line_of(statement, buffer, place) for place in run})
    return total


@pytest.mark.parametrize("name", ["tiled", "cached", "strided"])
def test_reuse_distance_is_the_least_distance_between_equal_places(name: str) -> None:
    for program in programs(SKETCHES[name]()):
        for statement in program:
            for buffer, indices in accesses(statement.nest.store).items():
                reuse = reuse_of(statement, buffer, program)
                if not reuse.by_loop or buffer.scope == "local":
                    continue
                seen: dict[Place, int] = {}
                least = None
                for time, place in enumerate(places(statement, indices, 0, {})):
                    if place in seen:
                        least = time - seen[place] if least is None else min(least, time - seen[place])
                    seen[place] = time
                assert least == reuse.iterations


def test_accesses_of_one_buffer_are_taken_together() -> None:
    for program in programs(stencil()):
        statement = program[0]
        (buffer,) = (buffer for buffer in statement.footprints if buffer.name == "X")
        print_ = statement.footprints[buffer]
        indices = accesses(statement.nest.store)[buffer]
        assert len(indices) == 4 and float(np.max(print_.places)) == 3
        true = [len(set(places(statement, indices, boundary, {}))) for boundary in range(len(print_.elements))]
        hull = [float(np.max(elements)) for elements in print_.elements]
        assert all(least <= found <= 60 for least, found in zip(true, hull, strict=True))


def test_data_dependent_places_may_be_anywhere_but_no_more_than_iterations() -> None:
    table = te.placeholder((50, 8), name="T")
    picks = te.placeholder((12,), dtype="int32", name="P")
    out = te.compute((12, 8), lambda i, j: table[picks[i], j], name="G")
    (statement,) = statements_of(Sketch(Dag([table, picks, out])).lower_row([]), FirstCache(LINE))
    touched = {buffer.name: [float(np.max(e)) for e in print_.elements] for buffer, print_ in statement.footprints.items()}
    assert touched == {"G": [96, 8, 1], "T": [96, 8, 1], "P": [12, 1, 1]}
