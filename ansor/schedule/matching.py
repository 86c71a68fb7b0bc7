"""Finds a schedule among the programs of a search: the sketch with its structure, and the row with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ansor.schedule.choice import Choice
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import Amount, Annotations, FuseRelation, Lengths, Relation, SplitRelation, Stage

Numbers = dict[str, tuple[int, ...]]


def row_of(program: Sketch, sketch: Sketch) -> tuple[int, ...] | None:
    """The row of `sketch` that is the same program as `program`, whose numbers are all given; None without one."""
    found = _numbers_in(program, sketch)
    if found is None:
        return None
    row = [choice.index_of(found[choice.name]) if choice.name in found else None for choice in sketch.choices]
    genes = tuple(gene for gene in row if gene is not None)
    if len(genes) != len(row):
        return None
    named = sketch.row_numbers(genes)
    stages = zip(program.state.stages, sketch.state.stages, strict=True)
    pairs = [pair for stage, own in stages for pair in zip(stage.relations, own.relations, strict=True)]
    return genes if all(_follows(one, other, named) for one, other in pairs) else None


def _numbers_in(program: Sketch, sketch: Sketch) -> Numbers | None:
    """The numbers of the program for what is open in a sketch of the same structure; None if the structures differ."""
    given, wanted = program.state.stages, sketch.state.stages
    found: Numbers = {}
    same = len(given) == len(wanted) and all(_same_stage(one, other, found) for one, other in zip(given, wanted, strict=True))
    return found if same else None


def found_among(program: Sketch, sketches: Sequence[Sketch]) -> tuple[int, tuple[int, ...]] | None:
    """The index of the first sketch that contains the program, and its row there; None when there is none."""
    for number, sketch in enumerate(sketches):
        row = row_of(program, sketch) if _same_dag(program, sketch) else None
        if row is not None:
            return number, row
    return None


def absent_values(program: Sketch, sketches: Sequence[Sketch]) -> tuple[tuple[Choice, tuple[int, ...]], ...]:
    """The choices, with the program's values, that keep it out of the sketch that fits best; empty if no sketch has the structure of the program."""
    found = []
    for sketch in sketches:
        numbers = _numbers_in(program, sketch) if _same_dag(program, sketch) else None
        if numbers is not None:
            given = [(choice, numbers[choice.name]) for choice in sketch.choices if choice.name in numbers]
            found.append(tuple((choice, value) for choice, value in given if choice.index_of(value) is None))
    return min(filter(None, found), key=len, default=())


def _same_dag(program: Sketch, sketch: Sketch) -> bool:
    return program.dag is sketch.dag or program.dag.key == sketch.dag.key


def _same_stage(given: Stage, wanted: Stage, found: Numbers) -> bool:
    """True when both have one structure; records in `found` the numbers that are open in the second."""
    if _structure(given) != _structure(wanted):
        return False
    if len(given.relations) != len(wanted.relations):
        return False
    related = all(_same_relation(one, other, found) for one, other in zip(given.relations, wanted.relations, strict=True))
    return related and _same_annotations(given.annotations, wanted.annotations, found)


def _structure(stage: Stage) -> tuple[object, ...]:
    """The parts without numbers; the order in which operands were packed does not matter."""
    packed, storage = stage.packed, stage.storage
    return stage.name, stage.loops, stage.placement, storage.kept, set(packed.ahead), set(packed.inside), storage.align


def _same_relation(given: Relation, wanted: Relation, found: Numbers) -> bool:
    if isinstance(given, FuseRelation) or isinstance(wanted, FuseRelation):
        return given == wanted
    if (given.parent, given.parts, given.outer) != (wanted.parent, wanted.parts, wanted.outer):
        return False
    # Following splits are checked once the numbers that they follow are known.
    return bool(wanted.follow) or bool(given.follow) or _bound(wanted.lengths, given.lengths, found)


def _bound(wanted: Lengths, given: Lengths, found: Numbers) -> bool:
    if isinstance(given, str):
        return False
    return found.setdefault(wanted, given) == given if isinstance(wanted, str) else wanted == given


def _follows(given: Relation, wanted: Relation, named: Numbers) -> bool:
    if isinstance(given, FuseRelation) or isinstance(wanted, FuseRelation):
        return given == wanted
    return lengths_of(given, named) == lengths_of(wanted, named)


def lengths_of(relation: SplitRelation, named: Numbers) -> tuple[int, ...]:
    """The inner lengths of a split, also of one that follows another."""
    lengths = named[relation.lengths] if isinstance(relation.lengths, str) else relation.lengths
    return (*lengths[: relation.follow - 1], prod(lengths[relation.follow - 1 :])) if relation.follow else lengths


def _same_annotations(given: Annotations, wanted: Annotations, found: Numbers) -> bool:
    if set(given.unroll) != set(wanted.unroll) or dict(given.intrinsics) != dict(wanted.intrinsics):
        return False
    loops = {*given.vectorize, *wanted.vectorize}
    pairs: list[tuple[Amount, Amount]] = [(given.vectorize.get(loop, 0), wanted.vectorize.get(loop, 0)) for loop in loops]
    pairs += [(given.parallel, wanted.parallel), (given.unroll_limit, wanted.unroll_limit)]
    return all(_amount(one, other, found) for one, other in pairs)


def _amount(given: Amount, wanted: Amount, found: Numbers) -> bool:
    if isinstance(given, str):
        return False
    return found.setdefault(wanted, (given,)) == (given,) if isinstance(wanted, str) else wanted == given
