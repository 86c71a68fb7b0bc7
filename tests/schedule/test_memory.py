"""Memories and their capacities: populations and rows agree, what is counted is what code generation places, what does not fit is refused before any build."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import ansor
from ansor import te
from ansor.codegen.generate import generate
from ansor.errors import ScheduleError
from ansor.ir.dag import Dag
from ansor.schedule.choice import level_choice, tile_choice
from ansor.schedule.legality import legal
from ansor.schedule.memory import check_memories, fits_memories, used_bytes
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import Buffered, CacheRead, ComputeAt, ComputeInline, PackInside, Reorder, SetScope, Split
from ansor.targets.base import Target, parse_target
from ansor.te.tensor import Tensor
from ansor.zoo.operators import matmul
from tests.declarations import seeded_draw
from tests.mixed_declarations import ALL_KINDS, any_case
from tests.programs import programs_of

SMALL = parse_target("cpu -mcpu=haswell -threads=1 -stack=4K -workspace=2K")


def with_memory(target: Target, **sizes: int | tuple[tuple[str, int], ...]) -> Target:
    """The target with other sizes of its memories."""
    memory = replace(target.hardware.memory, **sizes)  # type: ignore[arg-type]  # of its fields
    return replace(target, hardware=replace(target.hardware, memory=memory))


def chained(n: int = 64, m: int = 16) -> list[Tensor]:
    x = te.placeholder((n, m), name="x")
    y = te.compute((n, m), lambda i, j: te.exp(x[i, j]), name="y")
    return [x, te.compute((n, m), lambda i, j: y[i, j] + y[i, m - 1 - j], name="z")]


def in_tiles() -> Sketch:
    """y by rows of z, of 1 to 64 at once."""
    choice = tile_choice("i", 64, 1)
    return Sketch(Dag(chained())).then(Split("z", "i", "i", 2), ComputeAt("y", "z", "i_0"), choices=[choice])


def test_a_population_and_its_rows_agree() -> None:
    sketch = in_tiles()
    rows = np.arange(sketch.sizes[0]).reshape(-1, 1)
    fits = np.broadcast_to(np.asarray(fits_memories(sketch.lower_rows(rows), SMALL)), len(rows))
    assert fits.tolist() == [fits_memories(sketch.lower_row(row.tolist()), SMALL) for row in rows]
    lengths = [int(sketch.choices[0].table[gene][0]) for gene in rows[:, 0]]
    assert fits.tolist() == [length * 64 <= (2048 if length == 64 else 4096) for length in lengths]


@pytest.mark.parametrize("kind", sorted(ALL_KINDS))
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_a_workspace_is_counted_as_it_is_placed(kind: str) -> None:
    for seed in (1, 2):
        draw = seeded_draw(seed)
        for program in programs_of(draw, any_case(draw, kind))[:12]:
            target = with_memory(program.target, workspace_bytes=1 << 30)
            whole = min(map(int, used_bytes(program.loops, "workspace", target.alignment)), default=0)
            assert whole == generate(program.loops, target.machine, "f").workspace_bytes, str(program)


def test_whole_intermediates_have_to_fit_the_workspace() -> None:
    whole, inlined = Sketch(Dag(chained())), Sketch(Dag(chained())).then(ComputeInline("y"))
    assert legal(whole.lower_row(()), SMALL) is False and legal(inlined.lower_row(()), SMALL) is True
    assert legal(whole.lower_row(()), with_memory(SMALL, workspace_bytes=0)) is True
    with pytest.raises(ScheduleError, match="needs 4096 bytes for whole intermediates; a kernel for cpu .* has 2048: compute stages at loops of those"):
        check_memories(whole.lower_row(()), SMALL)


def test_copies_for_packing_are_whole_intermediates() -> None:
    packed = Sketch(Dag(matmul(8, 32, 32))).then(PackInside("C", "B")).lower_row(())
    assert list(used_bytes(packed, "workspace", 64)) == [4096, 4096] and legal(packed, SMALL) is False


def test_a_scratchpad_holds_what_is_put_there() -> None:
    target = with_memory(SMALL, others=(("scratchpad", 512),))
    sketch = Sketch(Dag(matmul(8, 32, 32))).then(CacheRead("A", ("C",)), Reorder("C", ("i", "j", "k")), ComputeAt("A_local", "C", "i"))
    usual, there = sketch.lower_row(()), sketch.then(SetScope("A_local", "scratchpad")).lower_row(())
    assert list(used_bytes(usual, "scratchpad", 64)) == [0] and list(used_bytes(there, "scratchpad", 64)) == [128]
    assert list(used_bytes(there, "local", 64)) == [0] and legal(there, target) is True
    too_small = with_memory(target, others=(("scratchpad", 64),))
    assert legal(there, too_small) is False
    with pytest.raises(ScheduleError, match="needs 128 bytes of scratchpad memory; .* has 64: keep smaller regions there"):
        check_memories(there, too_small)


def test_copies_that_are_taken_in_turn_all_count() -> None:
    sketch = Sketch(Dag(matmul(8, 32, 32))).then(CacheRead("A", ("C",)), ComputeAt("A_local", "C", "i"), SetScope("A_local", "scratchpad"))
    copies = level_choice("copies", (1, 2, 3))
    several = sketch.then(Buffered("A_local", copies.name), choices=[copies])
    assert [next(used_bytes(several.lower_row((gene,)), "scratchpad", 64)) for gene in range(3)] == [128, 256, 384]
    assert np.asarray(next(used_bytes(several.lower_rows(np.array([[0], [2]])), "scratchpad", 64))).tolist() == [128, 384]
    assert "3 x A_local: float32[1, 32] scratchpad" in str(several.lower_row((2,)))
    for step, said in ((Buffered("C", 2), "not computed inside a loop"), (Buffered("A_local", 0), "of at least 1")):
        with pytest.raises(ScheduleError, match=said):
            sketch.then(step).state  # noqa: B018


def test_what_is_in_a_scratchpad_without_loops_stays_as_long_as_the_program() -> None:
    x = te.placeholder((1, 8), name="x")
    y = te.compute((1, 8), lambda i, j: te.exp(x[i, j]), name="y")
    z = te.compute((1, 8), lambda i, j: y[i, j] + y[i, 7 - j], name="z")
    loops = Sketch(Dag([x, z])).then(ComputeAt("y", "z", "i"), SetScope("y", "scratchpad")).lower_row(())
    assert list(used_bytes(loops, "scratchpad", 64)) == [64] and list(used_bytes(loops, "workspace", 64)) == [0]


@pytest.mark.parametrize(("step", "said"), [
    (SetScope("y", "no name"), "give the name of a memory"), (SetScope("y", "output"), "give the name of a memory"), (SetScope("z", "pad"), "is an output"),
])  # fmt: skip
def test_what_cannot_be_elsewhere(step: SetScope, said: str) -> None:
    with pytest.raises(ScheduleError, match=said):
        Sketch(Dag(chained())).then(step).state  # noqa: B018
    with pytest.raises(ScheduleError, match="inlined and not stored"):
        Sketch(Dag(chained())).then(ComputeInline("y"), SetScope("y", "pad")).state  # noqa: B018


def test_a_search_keeps_to_the_workspace() -> None:
    task = ansor.SearchTask(lambda: chained(), (), SMALL, name="chained")
    for space in task.spaces:
        rows = np.stack([np.random.default_rng(0).integers(0, size, 64) for size in space.sizes], axis=1) if len(space.sizes) else np.zeros((1, 0), np.int64)
        for row, fits in zip(rows, space.legal(rows), strict=True):
            assert not fits or task.source(space.sketch, row.tolist()).workspace_bytes <= 2048


@pytest.mark.parametrize("trials", [0, 2])
def test_a_declaration_that_fits_nowhere_is_told_before_anything_is_built(trials: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> list[object]:
        raise AssertionError("something was built")

    monkeypatch.setattr("ansor.measure.builder.Builder.build", refuse)
    x = te.placeholder((64, 64), name="x")
    k, m = te.reduce_axis((0, 64), name="k"), te.reduce_axis((0, 64), name="m")
    y = te.compute((64, 64), lambda i, j: te.sum(x[i, k] * x[k, j], axis=k), name="y")
    z = te.compute((64, 64), lambda i, j: te.sum(y[i, m] * y[m, j], axis=m), name="z")
    with pytest.raises(ScheduleError, match="needs 16384 bytes for whole intermediates; .* has 2048: compute stages at loops of those that read them"):
        ansor.auto_schedule([x, z], target=SMALL, trials=trials)
