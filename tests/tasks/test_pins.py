"""What a person fixes of sketches."""

from pathlib import Path

import numpy as np
import pytest

import ansor
from ansor import Pin
from ansor.errors import ScheduleError
from ansor.measure.record import load
from ansor.search.mutation import mutate
from ansor.search.sampling import SampledSpace
from ansor.tasks.pins import pinnable
from ansor.tasks.recorded import recorded_outcomes
from ansor.tasks.sketch_space import SketchSpace
from ansor.zoo.operators import matmul
from tests.autotvm.templates import matmul as template

SIZES = (64, 64, 64)
TWO = "cpu -threads=2"


def spaces(*pins: Pin) -> tuple[SketchSpace, ...]:
    return ansor.SearchTask(matmul, SIZES, TWO, algorithms=(), pins=pins).spaces


def numbers(space: SketchSpace, name: str, count: int = 200) -> set[tuple[int, ...]]:
    """The values that some sampled and mutated rows have for a choice."""
    sampled, rng = SampledSpace(space), np.random.default_rng(0)
    rows = sampled.sample(count, rng)
    moved = mutate(sampled.tables, rows, rng)
    assert len(rows) and space.legal(rows).all() and all(space.allows(row) for row in moved.tolist())
    return {space.sketch.row_numbers(row)[name] for row in [*rows.tolist(), *moved.tolist()]}


def tile(space: SketchSpace) -> str:
    return next(choice.name for choice in space.sketch.choices if choice.name in ("C.j", "C_local.j"))


def test_the_innermost_length() -> None:
    plain, fixed = spaces(), spaces(Pin("C*.j", (..., 16)))
    assert [space.name for space in fixed] == [space.name for space in plain], "rows mean the same with and without pins"
    for space in fixed[:3]:
        found = numbers(space, tile(space))
        assert {row[-1] for row in found} == {16} and len(found) > 3


def test_all_lengths_and_one_of_several() -> None:
    (space, *_) = spaces(Pin("C.j", (4, 1, 16)), Pin("C.i", (None, {2, 4}, ...)))
    assert numbers(space, "C.j") == {(4, 1, 16)} and {row[1] for row in numbers(space, "C.i")} == {2, 4}


def test_annotations_are_forbidden_or_demanded() -> None:
    for space in spaces(Pin("*.vector", False), Pin("*.parallel"), Pin("*.unroll", {16, 64})):
        names = [choice.name for choice in space.sketch.choices]
        found = {name: numbers(space, name, 50) for name in names if name.rpartition(".")[2] in ("vector", "parallel", "unroll")}
        for name, values in found.items():
            wanted = {"vector": {(0,)}, "unroll": {(16,), (64,)}}.get(name.rpartition(".")[2])
            assert values <= wanted if wanted else (0,) not in values


def test_sketches_are_kept_by_their_steps() -> None:
    plain, cached, others = spaces(), spaces(Pin("C.CacheWrite")), spaces(Pin("C.CacheWrite", False))
    assert 0 < len(cached) < len(plain) and len(cached) + len(others) == len(plain)
    assert all("CacheWrite(stage='C')" in str(space.sketch) for space in cached) and not any("CacheWrite" in str(space.sketch) for space in others)
    assert {space.name for space in spaces(Pin("C.j", (..., 16)))} == {space.name for space in others}, "only they have a tile of that name"
    assert len(spaces(Pin("C_local.vector", False))) == len(plain), "what a sketch does not have it does without"


def test_pins_on_knobs_leave_the_rules_alone() -> None:
    task = ansor.SearchTask(matmul, SIZES, TWO, templates=[template], pins=[Pin("tile_x", (8,)), Pin("C_local.j", (..., 16))])
    rules = [space for space in task.spaces if not space.algorithm]
    own = [space for space in task.spaces if space.algorithm]
    assert len(own) == 2 and all(numbers(space, "tile_x") == {(8,)} for space in own)
    assert rules and all(not space.allowed.keys().isdisjoint(range(9)) for space in rules)


def test_a_pin_that_matches_nothing_says_what_there_is() -> None:
    with pytest.raises(ScheduleError, match=r"asked to pin D.j to \(..., 16\), but no sketch has that name; the names are C.i, C.j, .*C.vector.*C.CacheWrite"):
        spaces(Pin("D.j", (..., 16)))
    with pytest.raises(ScheduleError, match=r"asked to pin C.k to \(63,\), but no program is left; C.k has 1 or 2 or 3 or .*\.\.\."):
        spaces(Pin("C.k", (63,)))
    with pytest.raises(ScheduleError, match="no program is left with C.vector to True; C.vector has 0 or 1"):
        spaces(Pin("C.vector", True), Pin("C.vector", False))
    for fixed, given in (((1, 16), 2), (16, 1), ((1, 2, 3, 4, ...), 4)):
        with pytest.raises(ScheduleError, match=rf"asked to pin C.j to .*, which is {given} numbers?, but C.j has 3; give a tuple with as many"):
            spaces(Pin("C.j", fixed))
    with pytest.raises(ScheduleError, match="which is 2 numbers, but C.k has 1, C.vector has 1"):
        spaces(Pin("C.[kv]*", (1, 2)))
    with pytest.raises(ScheduleError, match="give `...` once"):
        Pin("C.j", (..., 4, ...))
    for value in ("16", None, ..., 1.5, [None, 4], (..., "4")):
        with pytest.raises(ScheduleError, match="asked to pin 'C.j' to .*; give a name, and True, False, a number"):
            Pin("C.j", value)  # type: ignore[arg-type]  # the mistake that is tested
    with pytest.raises(ScheduleError, match="asked to pin 'C.vector'; give a list of ansor.Pin"):
        spaces("C.vector")  # type: ignore[arg-type]


def test_what_can_be_pinned() -> None:
    found = pinnable(spaces())
    assert found["C.vector"] == "0 or 1" and found["C.unroll"] == "0 or 16 or 64 or 512" and found["C.CacheWrite"] == "True or False"
    assert found["C.j"].count(", then ") == 2


@pytest.mark.compiler
def test_runs_with_and_without_pins_share_records(tmp_path: Path) -> None:
    path, pins = tmp_path / "r.jsonl", [Pin("C.j", (..., 16)), Pin("C.vector")]
    plain, fixed = ansor.SearchTask(matmul, SIZES, TWO), ansor.SearchTask(matmul, SIZES, TWO, pins=pins)
    ansor.auto_schedule(matmul, SIZES, TWO, trials=2, records=path)
    kernel = ansor.auto_schedule(matmul, SIZES, TWO, trials=4, records=path, pins=pins)
    assert len(recorded_outcomes(plain, path).known) == len(load(path).records) >= 4
    known = recorded_outcomes(fixed, path)
    assert len(known.known) + sum(known.left_out.values()) == len(load(path).records) and all("as pinned" in reason for reason in known.left_out)
    for outcome, _ in known.known:
        space = fixed.spaces[outcome.pick.space]
        assert space.sketch.row_numbers(outcome.pick.row)["C.j"][-1] == 16 and space.sketch.row_numbers(outcome.pick.row)["C.vector"] == (1,)
    assert "vectorized for C_j_3 in 16" in kernel.schedule
