"""Finds a program for a task without measurements: the search is the usual one, but only the model scores programs.

Most of the time goes into computing the features of sketches, so only a few are considered. The sketches of a task come in families, which differ only in
where stages are computed. Families are combinations of the rules' choices for each stage. So the first search is over one sketch of each family that differs
from the first family in a single stage, the second over families that combine the best of these, and the third over several sketches of the best families.

The model is several networks, and a search exploits the errors of each. So the pick is the program that no network predicts to be much slower than its own
favourite; the largest predicted slowdown gives the confidence. If they disagree too much, the program with the fewest estimated cycles is used, which is
never far off; the same holds for targets without a model. Networks trained on the same programs can all be wrong together, so each prediction is blended with
the estimate. If no program is legal, the plain loops of the declaration are used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.base import CostModel
from ansor.cost_model.network_model import NetworkModel
from ansor.cost_model.pretrained import UNITS, knows
from ansor.cost_model.training_set import estimated_scores
from ansor.errors import AnsorError
from ansor.ir.feature_rows import FeatureRows
from ansor.run.kept_picks import kept_pick
from ansor.run.scoring_model import NamedModel, scoring_model
from ansor.run.states import Best, Guess
from ansor.schedule.memory import check_memories
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import Inlined
from ansor.schedule.steps import ComputeAt, Parallel, PragmaUnroll, Step, Vectorize
from ansor.search.evolution import EvolutionOptions, HallOfFame, Score, SearchGoal, evolve
from ansor.search.population import sample_population
from ansor.search.sampling import SampledSpace
from ansor.support.garbage import uncollected
from ansor.targets.base import Target
from ansor.tasks.origins import origin_of
from ansor.tasks.recording import together
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.task import SearchTask

FAMILIES = 3
"""The number of families in the last search."""

SKETCHES = 8
"""The most sketches in the last search, those of the best family first."""

COMBINED = 3
"""The number of families whose stages are combined."""

COMBINATIONS = 8
"""The most combinations to look at, those most like the best family first."""

FEW = 64
"""Up to this many sketches, all are considered if each is its own family."""

TRIED = 16
"""The most families in one search. If there are more, those that treat stages alike come first, of each algorithm in turn."""

DESCRIBED = 200
"""The most stages in all sketches of one search: computing features takes milliseconds per stage, and in a chain of reductions each sketch has many."""

_Family = tuple[str, tuple[tuple[str, tuple[Step, ...]], ...]]
"""An algorithm, and the steps of each stage of its declaration."""

PLACING = (ComputeAt, Parallel, Vectorize, PragmaUnroll)
"""Steps that sketches of one family may differ in: where a stage is computed, and the annotations that follow from it."""

SEARCH = EvolutionOptions(population=1024, generations=3)
"""How families are compared."""

LAST = EvolutionOptions(population=1024, generations=8)
"""How the best of them are searched. Picks are 3 % faster than with 3 generations (geometric means of ResNet-50 and MobileNet-V2 on two threads, of 40 held-out
operators, and of 40 held-out declarations drawn at random), for some 30 ms more each."""

STATEMENTS = 12
"""With more stages than this, populations are smaller: the features of a program take time for each stage."""

KEPT = 64
"""The number of best programs among which the networks choose."""

ESTIMATED = 0.4
"""The weight of the estimate relative to the networks, in log time. For 15 operators of kinds unseen in training, picks reach 0.82 of the tuned speed with it,
and at least 0.72 for each kind; without it 0.80 and 0.68, since the networks then agree on guesses. For 36 held-out operators of seen kinds, picks reach 0.91
with and without it (0.93 with half of it)."""

ALL = 1 << 19
"""Up to this many programs, all are evaluated if the target has its own estimate, which takes a microsecond per program."""

TOGETHER = 1 << 12
"""The number of programs estimated at a time."""

ESTIMATE = "estimate"
"""The name in place of a model's if no model knows the target."""

AGREED = 0.92
"""The expected speed of picks without regret, as a share of a tuned program's: 36 held-out operators, tuned with 64 trials, had 0.91 with regrets of 2 %, for
which this gives 0.90."""

SURE = 0.5
"""Below this confidence, the estimate decides."""


def pick(task: SearchTask, model: CostModel | str | None = None, among: Sequence[SketchSpace] | None = None, *, seed: int = 0) -> Guess:
    """The most promising program of a task, deterministic for a seed. `model`: the scorer, as in `SearchOptions`; `among`: some of the task's spaces."""
    given = _is_given(model)
    with uncollected(), together():
        chosen = picking_model(task.target, model)
        if given or among is not None or task.pins or task.templates:
            return _picked(task, chosen, task.spaces if among is None else among, seed)
        return kept_pick(task, ESTIMATE if chosen is None else chosen.mark, seed, lambda: _picked(task, chosen, task.spaces, seed))


def picking_model(target: Target, model: CostModel | str | None = None) -> NamedModel | None:
    """The scorer of a target's programs without measurements; None if no model knows the target, so that only the estimate is left."""
    unit = target.unit.name
    return scoring_model(target, unit, model) if _is_given(model) or knows(target.prior.family, unit) else None


def log_scores(scorer: NamedModel | None, features: FeatureRows) -> NDArray[np.float64]:
    """Logarithms of the speeds that a scorer, or the estimate, predicts for programs, up to a constant per task, `[n]`."""
    if scorer is None:
        return _logs(estimated_scores(features))
    found: NDArray[np.float64] = _opinions(scorer.model, features).mean(axis=0)
    return found


def _is_given(model: CostModel | str | None) -> bool:
    return not (model is None or isinstance(model, str))


def _picked(task: SearchTask, chosen: NamedModel | None, candidates: Sequence[SketchSpace], seed: int) -> Guess:
    """The pick. chosen: the scorer; None if no model knows the target."""
    rng = np.random.default_rng(seed)
    if chosen is None:
        return _by_estimate(task, candidates, f"there is no cost model for {_measured_as(task.target)}", rng)
    scorer = chosen.model
    score = partial(_scores, scorer)
    spaces = _promising(candidates, score, rng)
    hall = _searched(spaces, score, rng, LAST)
    if not len(hall.members):
        return replace(as_declared(task, "no program of its sketches is legal"), refused=True)
    place, regret = least_regret(_opinions(scorer, hall.features))
    sure = AGREED * math.exp(-regret)
    if sure >= SURE or math.isinf(regret):
        return Guess(_program(spaces, hall, place), f"chosen by {chosen.name}", None if math.isinf(regret) else sure)
    return _by_estimate(task, candidates, "the model is not sure", rng)


def _measured_as(target: Target) -> str:
    """The kind of a target, and its unit if a model of the package knows another one."""
    return f"{target.kind} in {target.unit.name}" if target.prior.family in UNITS else target.kind


def _by_estimate(task: SearchTask, candidates: Sequence[SketchSpace], why: str, rng: np.random.Generator) -> Guess:
    """The program with the fewest estimated cycles."""
    said = f"chosen by the estimate, because {why}"
    if task.target.estimates and sum(map(_programs, candidates)) <= ALL:
        found = _of_all(candidates)
        if found is not None:
            return Guess(found, said, None)
    spaces = _promising(candidates, estimated_scores, rng)
    estimated = _searched(spaces, estimated_scores, rng, LAST)
    if not len(estimated.members):
        return replace(as_declared(task, "no program of its sketches is legal"), refused=True)
    return Guess(_program(spaces, estimated, int(np.argmax(estimated.scores))), said, None)


def _of_all(candidates: Sequence[SketchSpace]) -> Best | None:
    """Of all programs, the legal one with the fewest cycles by the target's own estimate; None if none is legal."""
    best, least = None, math.inf
    for space in candidates:
        for first in range(0, _programs(space), TOGETHER):
            numbers = np.arange(first, min(first + TOGETHER, _programs(space)))
            rows = np.asarray(np.unravel_index(numbers, space.sizes), np.int64).T if len(space.sizes) else np.zeros((1, 0), np.int64)
            costs = np.broadcast_to(np.asarray(space.target.cost(space.sketch.lower_rows(rows)), np.float64), len(rows))
            costs = np.where(space.legal(rows), costs, math.inf)
            place = int(np.argmin(costs))
            if costs[place] < least:
                best, least = Best(space.sketch, tuple(rows[place].tolist()), math.inf, origin_of(space.algorithm)), float(costs[place])
    return best


def _programs(space: SketchSpace) -> int:
    return math.prod(space.sizes.tolist())


def as_declared(task: SearchTask, why: str) -> Guess:
    """The plain loops of the declaration, which always run. Raises ScheduleError if even they do not fit the target's memories."""
    plain = Sketch(task.dag)
    check_memories(plain.lower_row(()), task.target)
    return Guess(Best(plain, (), math.inf), f"the declaration as it is, because {why}", None)


def can_run_as_declared(task: SearchTask) -> bool:
    """Whether the target has a program for the plain loops of the declaration."""
    try:
        task.target.emit(as_declared(task, "").program.sketch.lower_row(()), "declared")
    except AnsorError:
        return False
    return task.target.plain_loops


def least_regret(opinions: NDArray[np.float64]) -> tuple[int, float]:
    """The program with the least regret, and its regret: how much slower, at most, a scorer predicts it to be than the scorer's own favourite, in log time.

    opinions: log scores, [scorers, n], n >= 1. With one scorer, the regret is unknown and therefore infinite.
    """
    worst = (opinions.max(axis=1, keepdims=True) - opinions).max(axis=0)
    place = int(np.argmin(worst))
    return place, float(worst[place]) if len(opinions) > 1 else math.inf


def _opinions(scorer: CostModel, features: FeatureRows) -> NDArray[np.float64]:
    """Log scores by each network, or by another kind of scorer, `[scorers, n]`."""
    if not isinstance(scorer, NetworkModel):
        return _logs(scorer.predict(features))[None, :]
    return _with_estimate(scorer.opinions(features), features)


def _scores(scorer: CostModel, features: FeatureRows) -> NDArray[np.float64]:
    """The scores for a search, `[n]`. Scores of models other than networks are used unchanged: they may have any sign and need not be speeds."""
    if not isinstance(scorer, NetworkModel):
        return scorer.predict(features)
    return np.exp(_with_estimate(scorer.predict(features), features))


def _with_estimate(scores: NDArray[np.float64], features: FeatureRows) -> NDArray[np.float64]:
    """Log scores of networks, `[..., n]`, blended with the estimate."""
    return (1 - ESTIMATED) * _logs(scores) + ESTIMATED * _logs(estimated_scores(features))


def _logs(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log(np.maximum(scores, 1e-300))


def _promising(spaces: Sequence[SketchSpace], score: Score, rng: np.random.Generator) -> list[SketchSpace]:
    """The sketches of the best families."""
    families: dict[_Family, list[SketchSpace]] = {}
    for space in spaces:
        families.setdefault(_family(space), []).append(space)
    fits = max(FAMILIES, DESCRIBED // max(map(_kept_stages, spaces), default=1))
    if len(families) == len(spaces) <= FEW:
        return list(spaces[:fits])
    first: dict[str, _Family] = {}
    for family in families:
        first.setdefault(family[0], family)
    tried = [family for family in families if _differences(family, first[family[0]]) <= 1]
    if len(tried) > min(TRIED, fits):
        tried = _in_turn(list(families))[: min(TRIED, fits)]
    best = _ranked(families, tried, score, rng)
    combined = _combinations([family for family in families if family not in tried], list(best)[:COMBINED])[: min(COMBINATIONS, fits - FAMILIES)]
    if combined:
        best = _ranked(families | best, [*list(best)[:FAMILIES], *combined], score, rng)
    return [space for sketches in list(best.values())[:FAMILIES] for space in sketches][: min(SKETCHES, fits)]


def _in_turn(families: Sequence[_Family]) -> list[_Family]:
    """Families of each algorithm in turn, so that none is left out for coming late."""
    turns = Counter[str]()
    ranked = []
    for place, family in enumerate(families):
        ranked.append((turns[family[0]], place, family))
        turns[family[0]] += 1
    return [family for _, _, family in sorted(ranked, key=lambda one: one[:2])]


def _kept_stages(space: SketchSpace) -> int:
    """The number of stages of a sketch that are not inlined."""
    return sum(not isinstance(stage.placement, Inlined) for stage in space.sketch.state.stages)


def _ranked(
    families: Mapping[_Family, list[SketchSpace]], among: Sequence[_Family], score: Score, rng: np.random.Generator
) -> dict[_Family, list[SketchSpace]]:
    """Some families, best first, scored by one sketch of each: the first with a legal program, since memory may be too small for stages computed as a whole.
    Sketches before it are left out."""
    best, first = np.full(len(among), -np.inf), [0] * len(among)
    waiting = list(range(len(among)))
    while waiting:
        hall = _searched([families[among[place]][first[place]] for place in waiting], score, rng)
        np.maximum.at(best, np.array(waiting)[hall.members.owners()], hall.scores)
        waiting = [place for place in waiting if math.isinf(best[place]) and first[place] + 1 < len(families[among[place]])]
        for place in waiting:
            first[place] += 1
    return {among[place]: families[among[place]][first[place] :] for place in np.argsort(-best, kind="stable").tolist()}


def _family(space: SketchSpace) -> _Family:
    """The family of a sketch: the same for sketches that differ only in where stages are computed."""
    names = [stage.name for stage in space.sketch.dag.stages]
    steps: dict[str, list[Step]] = {}
    for step in space.sketch.steps:
        if not isinstance(step, PLACING):
            steps.setdefault(_declared(step.stage, names), []).append(step)
    return space.algorithm, tuple((name, tuple(done)) for name, done in sorted(steps.items()))


def _declared(stage: str, names: Sequence[str]) -> str:
    """The stage of the declaration that a stage was made from: C_local is the tile of C."""
    return max((name for name in names if stage.startswith(name)), key=len, default=stage)


def _differences(one: _Family, other: _Family) -> int:
    """The number of stages that rules treat differently."""
    return len({name for name, _ in set(one[1]) ^ set(other[1])})


def _combinations(families: Sequence[_Family], best: Sequence[_Family]) -> list[_Family]:
    """Those that combine the best ones, in whose order they come: first the one whose stages are most like those of the first."""
    found = [family for family in families if _combines(family, best)]
    return sorted(found, key=lambda family: [_differences(family, one) for one in best])


def _combines(family: _Family, best: Sequence[_Family]) -> bool:
    """Whether each of its stages is as in one of the best families of its algorithm."""
    known = {stage for algorithm, stages in best if algorithm == family[0] for stage in stages}
    return bool(known) and set(family[1]) <= known


def _searched(spaces: Sequence[SketchSpace], score: Score, rng: np.random.Generator, options: EvolutionOptions = SEARCH) -> HallOfFame:
    sampled = [SampledSpace(space) for space in spaces]
    nothing = [np.zeros(0, np.uint64)] * len(spaces)
    chances = np.ones(len(spaces))
    stages = max(len(space.sketch.state.stages) for space in spaces)
    search = replace(options, population=max(options.population * STATEMENTS // max(stages, STATEMENTS), 2 * KEPT))
    start = sample_population(sampled, search.population, chances, rng, nothing)
    return evolve(sampled, score, start, SearchGoal.anywhere(sampled, KEPT), rng, search)


def _program(spaces: Sequence[SketchSpace], hall: HallOfFame, place: int) -> Best:
    space, row = hall.members.member(place)
    return Best(spaces[space].sketch, row, math.inf, origin_of(spaces[space].algorithm))
