"""Explains why the best recorded program of a workload is fast, and which programs it beat. Start at `explain`: from a task and its trials to an `Explanation`.

Nothing is measured or built. Times come from the records; reasons come from the schedule, the cycle estimate and the footprints that it uses.
`ansor.explain.text` turns the value into text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model import analytic
from ansor.cost_model.base import CostModel
from ansor.cost_model.buffer_features import Statement, statements_of
from ansor.cost_model.metrics import rank_correlation
from ansor.errors import ArgumentError, RecordError
from ansor.explain.rule_trace import RuleTrace, made_of, rule_trace
from ansor.explain.steps_in_words import Fact, in_words
from ansor.explain.values import (
    Alternatives,
    AxisTiles,
    Cost,
    Explanation,
    Level,
    MainStatement,
    Place,
    Program,
    Ranking,
    Rankings,
    RegisterTile,
    Rival,
    Rules,
    Trials,
    UnusedOption,
    Work,
)
from ansor.ir.dag import Dag
from ansor.ir.feature_rows import FeatureRows, join
from ansor.ir.loops import Loops, stores
from ansor.schedule import legality
from ansor.schedule.questions import is_follower
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import At, FuseRelation, SplitRelation, Stage
from ansor.schedule.steps import CacheWrite, Rfactor
from ansor.search.tuner import Outcome
from ansor.support.names import known_names
from ansor.support.text import counted, with_article
from ansor.targets.base import Target
from ansor.targets.unit import SECONDS, Unit
from ansor.tasks.origins import RULES, origin_of
from ansor.tasks.recorded import recorded_outcomes
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.task import SearchTask
from ansor.te.dtypes import BYTES

CACHES = ("L1", "L2", "L3")

ENOUGH = 32
"""With fewer valid trials, a learned model's ranking is meaningless."""

FOLDS = 4
"""The learned model ranks each quarter of the trials after training on the other three."""

FUSED_ADDS = 2
"""Vector multiply-adds that the estimate's core can start per cycle."""


@known_names()
def explain(
    task: SearchTask, trials: Sequence[Outcome] | str | Path, *, peak_gflops: float | None = None, bandwidth_gbytes: float | None = None,
    model: Callable[[], CostModel] | None = None, unit: Unit = SECONDS,
) -> Explanation:  # fmt: skip
    """Explain a task's best program from its trials, or from those in a record file. Raises RecordError if none is valid, and ArgumentError for anything else.

    `model` creates the cost model to train on the trials, if there are enough of them; None: no model. `peak_gflops` and `bandwidth_gbytes`: of all threads and
    of memory, in 10^9 a second, if known; `unit`: of the trials' costs; a record file says so itself.
    """
    outcomes, unit, source = _given(task, trials, unit)
    if unit != SECONDS:
        _check_no_limits(task, unit, peak_gflops, bandwidth_gbytes)
    valid = sorted((one for one in outcomes if one.valid), key=_measured)
    if not valid:
        found = counted(len(outcomes), "recorded trial")
        raise RecordError(f"asked to explain {task.name}, which has no valid program among {found}{source}; tune with more trials")
    best, space = valid[0], task.spaces[valid[0].pick.space]
    loops = space.sketch.lower_row(best.pick.row)
    statements = statements_of(loops, analytic.first_cache(task.target))
    program = _program(task, best)
    statement = _main_statement(statements, task.target, whole=program.whole)
    algorithms = dict.fromkeys(one.algorithm for one in task.spaces if one.algorithm != space.algorithm)
    return Explanation(
        _work(task, max(statements, key=_iterations)),
        _place(task.target, peak_gflops, bandwidth_gbytes),
        _trials(outcomes, valid, unit),
        program,
        _rules(task, best, outcomes, statement.nest.store.stage),
        _main(space, best.pick.row, statement, task.target),
        _rankings(task, outcomes, model if len(valid) >= ENOUGH else None),
        Alternatives(
            _rival(task, program, [one for one in valid if one.pick.space != best.pick.space]),
            _rival(task, program, [one for one in valid[1:] if one.pick.space == best.pick.space and one.pick.row != best.pick.row]),
            tuple(_tried(task, outcomes, name) for name in algorithms),
        ),
    )


def _given(task: SearchTask, trials: Sequence[Outcome] | str | Path, unit: Unit) -> tuple[Sequence[Outcome], Unit, str]:
    """The trials, given or of the record file at a path, their unit, and of which file they are and what of it is left out, as text. Raises ArgumentError for
    anything else."""
    if not isinstance(task, SearchTask):
        raise ArgumentError(f"asked to explain {with_article(type(task).__name__)} ({task!r:.80}); give an ansor.SearchTask, and its trials or a record file")
    if isinstance(trials, str | Path):
        if not Path(trials).is_file():
            raise RecordError(f"asked to explain {task.name} with the records in {trials}, which is not a file; name a record file that `ansor tune` wrote")
        found = recorded_outcomes(task, trials)
        left_out = "".join(f"; {count} left out: {reason}" for reason, count in found.left_out.items())
        return [outcome for outcome, _ in found.known], found.unit, f" in {trials}{left_out}"
    wrong = [one for one in trials if not isinstance(one, Outcome)] if isinstance(trials, Sequence) else [trials]
    if wrong:
        what = f"{with_article(type(wrong[0]).__name__)} ({wrong[0]!r:.80})"
        raise ArgumentError(f"asked to explain {task.name} with {what}; give the path of a record file, or Outcomes")
    return trials, unit, ""


def _check_no_limits(task: SearchTask, unit: Unit, peak: float | None, bandwidth: float | None) -> None:
    """Raise ArgumentError for a limit that costs of this unit, which are not times, cannot be compared with."""
    for what, rate, name in (("peak", peak, "GFLOP/s"), ("bandwidth", bandwidth, "GB/s")):
        if rate is not None:
            told = f"asked to compare {task.name} with a {what} of {rate:g} {name}, but its trials cost {unit}, not seconds"
            raise ArgumentError(f"{told}; leave the {what} (--{what}) out")


def moved_bytes(dag: Dag) -> int:
    """Bytes of all arguments: what a program moves when it reads each input and writes each output once."""
    return sum(math.prod(tensor.shape) * BYTES[tensor.dtype] for tensor in dag.tensors)


def _work(task: SearchTask, longest: Statement) -> Work:
    count = moved_bytes(task.dag)
    return Work(task.name, task.flop, count, _fits(count, count, task.target), _floor(task, longest))


def _place(target: Target, peak: float | None, bandwidth: float | None) -> Place:
    clock = None if peak is None else 1e9 * peak / _most_flop(target, "float32")
    return Place(str(target), _caches(target), target.prior.traffic.fill, peak, bandwidth, clock)


def _trials(outcomes: Sequence[Outcome], valid: Sequence[Outcome], unit: Unit) -> Trials:
    failures = Counter(one.failure or "no time" for one in outcomes if not one.valid).most_common()
    return Trials(len(outcomes), len(valid), tuple(failures), float(np.median([_measured(one) for one in valid])), unit)


def _rankings(task: SearchTask, outcomes: Sequence[Outcome], model: Callable[[], CostModel] | None) -> Rankings:
    features = _features(task, outcomes)
    by_estimate = _ranking(outcomes, -features.sums(np.exp(features.prior_logs())))
    return Rankings(by_estimate, None if model is None else _learned(features, outcomes, model))


def _measured(outcome: Outcome) -> float:
    return math.inf if outcome.cost is None else outcome.cost


def _least(outcomes: Sequence[Outcome]) -> float:
    return min((_measured(one) for one in outcomes if one.valid), default=math.inf)


def _tried(task: SearchTask, outcomes: Sequence[Outcome], algorithm: str) -> UnusedOption:
    own = [one for one in outcomes if task.spaces[one.pick.space].algorithm == algorithm]
    return UnusedOption(algorithm, len(own), _least(own))


# programs -------------------------------------------------------------------------------------------------------------------------------------------


def _program(task: SearchTask, outcome: Outcome) -> Program:
    space, row = task.spaces[outcome.pick.space], outcome.pick.row
    loops = space.sketch.lower_row(row)
    statements, own = statements_of(loops, analytic.first_cache(task.target)), task.target.cost(loops)
    costs = tuple(_cost(one, task.target) for one in statements) if own is None else (Cost("in all", float(own), 0.0),)
    tiles = tuple(tiles for stage in space.sketch.state.stages for tiles in stage_tiles(space.sketch, row, stage, loops))
    main = _main_statement(statements, task.target, whole=own is not None).nest.store.stage
    facts, workers = in_words(space.sketch, row, partial(_has_vectors, task.target)), tuple(made_of(space.sketch, CacheWrite, Rfactor).items())
    return Program(space.algorithm, _measured(outcome), main, facts, tiles, costs, workers, own is not None)


def _has_vectors(target: Target, dtype: str) -> bool:
    """Whether vectors of that type have several elements."""
    return target.lanes(BYTES[dtype]) > 1


def _cost(statement: Statement, target: Target) -> Cost:
    found = analytic.estimate(statement, target)
    threads = float(found.threads)
    return Cost(statement.nest.store.stage, float(found.instructions) / threads, float(sum(found.transfers, start=0.0)) / threads, float(found.fork))


def stage_tiles(sketch: Sketch, row: Sequence[int], stage: Stage, loops: Loops) -> tuple[AxisTiles, ...]:
    """The tile lengths of a stage's axes in a row of a sketch; empty for a stage that is not tiled, or that is tiled like another.

    If a stage is computed inside another that is tiled like it, its outer parts are there: the lengths combine both.
    """
    own = [loop for path, store in stores(loops.body) if store.stage == stage.name for loop in path if loop.stage == stage.name]
    if not any(isinstance(one, SplitRelation) for one in stage.relations) or is_follower(stage) or len(own) != len(stage.loops):
        return ()
    extents = {name: _int(loop.var.extent) for name, loop in zip(stage.loops, own, strict=True)}
    followed = isinstance(stage.placement, At) and is_follower(sketch.state[stage.placement.stage])
    numbers = sketch.row_numbers(row)
    found = []
    declared = {axis.name: axis.extent for axis in stage.axes}
    for name in (*declared, *(one.fused for one in stage.relations if isinstance(one, FuseRelation))):
        leaves = _leaves(stage, name)
        if leaves is None:
            continue
        lengths = tuple(extents[leaf] for leaf in stage.loops if leaf in leaves)
        if followed and stage.kinds[name] == "spatial" and name in declared:
            cut = next((one for one in stage.relations if isinstance(one, SplitRelation) and one.parent == name), None)
            inner = () if cut is None else numbers[cut.lengths] if isinstance(cut.lengths, str) else cut.lengths
            lengths = (-(-declared[name] // math.prod(inner)), *inner)
        found.append(AxisTiles(stage.name, name, declared.get(name, math.prod(lengths)), lengths))
    return tuple(found)


def _leaves(stage: Stage, loop: str) -> set[str] | None:
    """The loops that an axis was split into; None if it was fused with another."""
    for relation in stage.relations:
        if isinstance(relation, SplitRelation) and relation.parent == loop:
            parts = [_leaves(stage, part) for part in relation.parts]
            return None if any(part is None for part in parts) else {leaf for part in parts if part is not None for leaf in part}
        if isinstance(relation, FuseRelation) and loop in relation.parents:
            return None
    return {loop}


def _int(value: object) -> int:
    return int(np.asarray(value).reshape(-1)[0])


# the main statement ---------------------------------------------------------------------------------------------------------------------------------


def _main_statement(statements: Sequence[Statement], target: Target, *, whole: bool) -> Statement:
    """The statement with the most estimated cycles or, if the target has its own estimate of the whole program, the one that `_iterations` puts last."""
    if whole:
        return max(statements, key=_iterations)
    return max(statements, key=lambda one: float(analytic.estimate(one, target).cycles))


def _iterations(statement: Statement) -> tuple[bool, float]:
    """Orders statements by their iterations, reductions after all others."""
    return statement.nest.store.combiner is not None, float(statement.nest.iterations)


def _main(space: SketchSpace, row: Sequence[int], statement: Statement, target: Target) -> MainStatement:
    name = statement.nest.store.stage
    state = space.sketch.state
    tiles = stage_tiles(space.sketch, row, state[name], space.sketch.lower_row(row)) if name in state else ()
    loads = dict(zip(CACHES, analytic.cache_loads(statement, target), strict=True))
    loaded = tuple((cache, float(loads[cache])) for cache, _ in _caches(target))
    return MainStatement(name, tiles, _register_tile(statement, target), _levels(statement, target), loaded)


def _caches(target: Target) -> tuple[tuple[str, int], ...]:
    """The target's caches: names, and sizes in bytes."""
    return tuple((name, size) for name, size in zip(CACHES, target.caches.sizes, strict=True) if size)


def _register_tile(statement: Statement, target: Target) -> RegisterTile | None:
    """The register tile; None for a statement without a reduction, or in matrix registers."""
    path, store, size = statement.nest.path, statement.nest.store, target.vector_bytes
    intrinsic = path[-1].intrinsic if path else None
    if store.combiner is None or (intrinsic is not None and intrinsic.block is not None):
        return None
    registers = _int(legality.registers_for(path, store, target))
    held = _int(legality.register_tile(path, store, size))
    along = _int(legality.vectors_in_row(path, store, size))
    vectors = along if held % along == 0 else 1  # loops outside the reduction add no vectors to the tile
    return RegisterTile(
        rows=held // vectors,
        vectors=vectors,
        accumulators=held + _int(legality.offsets(path, store, size)),
        most=_int(legality.accumulators(registers)),
        operands=_int(legality.operands(path, store, held, size)),
        registers=registers,
        scalar=not _has_vectors(target, store.buffer.dtype),
        partial=bool(analytic.estimate(statement, target).tile.partial.lanes > 1),
    )


def _levels(statement: Statement, target: Target) -> tuple[Level, ...]:
    """The whole nest, then each loop of more than one iteration, from the outside in."""
    nest = statement.nest
    vectors = _has_vectors(target, nest.store.buffer.dtype)
    touched = [(float(one), _fits(float(one), float(taken), target)) for one, taken in zip(statement.bytes, statement.room, strict=True)]
    found = [Level("", 1, "", *touched[0])]
    for loop, inside in zip(nest.loops, touched[1:], strict=True):
        runs = [word for word, flag in (("parallel", loop.parallel), ("vectors", vectors and loop.vectorized), ("unrolled", loop.unrolled)) if np.any(flag)]
        found.append(Level(loop.var.name, _int(loop.var.extent), ", ".join(runs), *inside))
    return tuple(found)


def _fits(count: float, taken: float, target: Target) -> str:
    """The first cache of which these bytes fill at most the share that the estimate counts as usable. taken: their bytes in L1, where sets may be crowded."""
    return next((name for name, size in _caches(target) if (taken if name == CACHES[0] else count) <= target.prior.traffic.fill * size), "memory")


def _floor(task: SearchTask, statement: Statement) -> float | None:
    """Cycles of the declared arithmetic if each thread starts FUSED_ADDS vector multiply-adds in every cycle."""
    store = statement.nest.store
    if store.combiner != "sum" or not store.buffer.dtype.startswith("float"):
        return None
    return task.flop / _most_flop(task.target, store.buffer.dtype)


def _most_flop(target: Target, dtype: str) -> int:
    """The operations of a cycle in which each thread starts FUSED_ADDS vector multiply-adds."""
    return 2 * FUSED_ADDS * target.lanes(BYTES[dtype]) * target.threads


# rules ----------------------------------------------------------------------------------------------------------------------------------------------


def _rules(task: SearchTask, best: Outcome, outcomes: Sequence[Outcome], main: str) -> Rules:
    space = task.spaces[best.pick.space]
    trace = rule_trace(space.sketch.dag, task.rules if origin_of(space.algorithm) == RULES else (), task.target)
    family = _family(task, space.algorithm, main)
    fired = trace.fired(space.sketch)
    names = dict.fromkeys(one.rule for one in fired)
    grouped = tuple((name, tuple(one.stage for one in fired if one.rule == name)) for name in names)
    same = [one for one in outcomes if task.spaces[one.pick.space].algorithm == space.algorithm]
    taken = {one.rule for one in fired if one.stage in family}
    without = [_without(task, trace, name, family, same) for name in trace.names if name not in taken and trace.applied(name, family)]
    return Rules(grouped, trace.idle(family), tuple(one for one in without if one is not None), family[0])


def _family(task: SearchTask, algorithm: str, main: str) -> tuple[str, ...]:
    """A declared stage, and the stages that any sketch derives from it: the rules visit `c`, and then its private tile `c_local`."""
    origins: dict[str, str] = {}
    for space in task.spaces:
        if space.algorithm == algorithm:
            origins |= made_of(space.sketch)
    while main in origins:
        main = origins[main]
    family = [main]
    for made, origin in origins.items():
        if origin in family:
            family.append(made)
    return tuple(family)


def _without(task: SearchTask, trace: RuleTrace, rule: str, family: Sequence[str], outcomes: Sequence[Outcome]) -> UnusedOption | None:
    """The best trial with a rule that the best program does not use; None if no sketch shows the rule, because it adds no step."""
    spaces = {k for k, space in enumerate(task.spaces) if any(one.rule == rule and one.stage in family for one in trace.fired(space.sketch))}
    tried = [one for one in outcomes if one.pick.space in spaces]
    return UnusedOption(rule, len(tried), _least(tried)) if spaces else None


# rankings -------------------------------------------------------------------------------------------------------------------------------------------


def _features(task: SearchTask, outcomes: Sequence[Outcome]) -> FeatureRows:
    """The feature rows of all trials, in the order of the trials."""
    parts: list[FeatureRows] = []
    places: list[int] = []
    for index in dict.fromkeys(one.pick.space for one in outcomes):
        members = [k for k, one in enumerate(outcomes) if one.pick.space == index]
        rows = np.asarray([outcomes[k].pick.row for k in members], dtype=np.int64).reshape(len(members), -1)
        parts.append(task.spaces[index].features(rows))
        places += members
    return join(parts).take(np.argsort(np.asarray(places, dtype=np.int64)))


def _learned(features: FeatureRows, outcomes: Sequence[Outcome], model: Callable[[], CostModel]) -> Ranking:
    """How the model ranks trials that it was not trained on."""
    costs = np.asarray([_measured(one) for one in outcomes])
    fold = np.arange(len(outcomes)) % FOLDS
    scores = np.zeros(len(outcomes))
    for k in range(FOLDS):
        told, asked = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        one = model()
        one.update(features.take(told), costs[told], np.zeros(len(told), dtype=np.int64))
        scores[asked] = one.predict(features.take(asked))
    return _ranking(outcomes, scores)


def _ranking(outcomes: Sequence[Outcome], scores: NDArray[np.float64]) -> Ranking:
    """`scores`: one per trial, higher is better."""
    valid = [k for k, one in enumerate(outcomes) if one.valid]
    speed, given = -np.asarray([_measured(outcomes[k]) for k in valid]), scores[valid]
    return Ranking(rank_correlation(speed, given), 1 + int((given > given[int(np.argmax(speed))]).sum()), len(valid))


# rivals ---------------------------------------------------------------------------------------------------------------------------------------------


def _rival(task: SearchTask, best: Program, others: Sequence[Outcome]) -> Rival | None:
    """Compare the best program with the first of `others`, which are ordered by cost."""
    if not others:
        return None
    other = _program(task, others[0])
    if other.algorithm != best.algorithm:
        return Rival(other, (), (), ())
    ours, theirs = _only_in(best, other), _only_in(other, best)
    lengths = {(_role(other, one.stage), one.axis): one.lengths for one in other.tiles}
    pairs = [(one.stage, one.axis, one.lengths, lengths.get((_role(best, one.stage), one.axis), one.lengths)) for one in best.tiles]
    return Rival(other, ours, theirs, tuple(pair for pair in pairs if pair[2] != pair[3]))


def _only_in(program: Program, other: Program) -> tuple[Fact, ...]:
    """Facts about one program that do not hold for the other."""
    known = {(_role(other, one.stage), one.text) for one in other.facts}
    return tuple(one for one in program.facts if (_role(program, one.stage), one.text) not in known)


def _role(program: Program, stage: str) -> tuple[str, bool]:
    """What to compare a stage with: the declared stage, and whether this one does its arithmetic, as `c` does or, with a private tile, `c_local`."""
    known = dict(program.workers)
    return known.get(stage, stage), stage not in known.values()
