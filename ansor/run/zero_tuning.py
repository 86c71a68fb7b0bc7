"""A program for a task without measurements: searched for like any other, but judged only by the model.

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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.base import CostModel
from ansor.cost_model.network_model import NetworkModel
from ansor.cost_model.pretrained import knows
from ansor.cost_model.training_set import estimated_scores
from ansor.ir.feature_rows import FeatureRows
from ansor.run.judge import Judge, judge_of
from ansor.run.kept_picks import kept_pick
from ansor.run.states import Best, Guess
from ansor.schedule.memory import check_memories
from ansor.schedule.sketch import Sketch
from ansor.schedule.state import Inlined
from ansor.schedule.steps import ComputeAt, Parallel, PragmaUnroll, Step, Vectorize
from ansor.search.evolution import EvolutionOptions, Hall, Quest, Score, evolve
from ansor.search.population import sample_population
from ansor.search.sampling import SampledSpace
from ansor.support.garbage import uncollected
from ansor.targets.base import Target
from ansor.tasks.origins import origin_of
from ansor.tasks.recording import together
from ansor.tasks.sketch_space import SketchSpace
from ansor.tasks.task import SearchTask

FAMILIES = 3
"""Families of sketches that the last search is over."""

SKETCHES = 8
"""Sketches of them, at most, those of the best family first."""

COMBINED = 3
"""Families whose stages are combined."""

FEW = 64
"""Sketches that are all looked at where each is a family of its own."""

TRIED = 16
"""Families that a search is over at most. Those that treat stages alike come first where there are more."""

DESCRIBED = 200
"""Stages that the sketches of one search have together, at most: describing each takes milliseconds, and a chain of reductions has many in each sketch."""

_Family = tuple[str, tuple[tuple[str, tuple[Step, ...]], ...]]
"""An algorithm, and the steps of each stage of its declaration."""

PLACING = (ComputeAt, Parallel, Vectorize, PragmaUnroll)
"""Steps that sketches of one family may differ in: where a stage is computed, and the annotations that follow from it."""

SEARCH = EvolutionOptions(population=1024, generations=3)
STATEMENTS = 12
"""Stages up to which populations have this size: describing a program takes time for each of its stages."""

KEPT = 64
"""Programs among which the networks are asked for their first choices."""

ESTIMATED = 0.4
"""Weight of the estimate beside the networks, in log time. Picks of 15 operators of kinds that networks had never seen have 0.82 of the tuned speed with it,
and 0.72 or more of each kind; 0.80 and 0.68 without: there, networks agree on what all of them guess. Of 36 held-out operators of seen kinds, 0.91 with it and
without (0.93 with half of it)."""

ALL = 1 << 19
"""Programs that are all looked at where a target has an estimate of its own, which takes a microsecond for each."""

TOGETHER = 1 << 12
"""Programs that are estimated at a time."""

ESTIMATE = "estimate"
"""What stands for the model where none knows the target."""

AGREED = 0.92
"""Share of a tuned program's speed that picks are expected to have which no network regrets: 36 held-out operators, tuned with 64 trials, had 0.91 with regrets
of 2 %, where this gives 0.90."""

SURE = 0.5
"""Confidence below which the estimate decides."""


def pick(task: SearchTask, model: CostModel | str | None = None, among: Sequence[SketchSpace] | None = None, *, seed: int = 0) -> Guess:
    """The most promising program of a task, the same for a seed. `model`: what judges, as in `SearchOptions`; `among`: some of the task's spaces."""
    given = _is_given(model)
    with uncollected(), together():
        chosen = judge_for(task.target, model)
        if given or among is not None or task.pins or task.templates:
            return _picked(task, chosen, task.spaces if among is None else among, seed)
        return kept_pick(task, ESTIMATE if chosen is None else chosen.mark, seed, lambda: _picked(task, chosen, task.spaces, seed))


def judge_for(target: Target, model: CostModel | str | None = None) -> Judge | None:
    """What judges programs of a target without measurements; None where no model knows it, and the estimate has to do."""
    unit = target.unit.name
    return judge_of(target, unit, model) if _is_given(model) or knows(target.prior.family, unit) else None


def log_scores(judge: Judge | None, features: FeatureRows) -> NDArray[np.float64]:
    """Logarithms of the speeds that a judge, or the estimate, expects of programs, up to a constant of the task, `[n]`."""
    if judge is None:
        return _logs(estimated_scores(features))
    found: NDArray[np.float64] = _opinions(judge.model, features).mean(axis=0)
    return found


def _is_given(model: CostModel | str | None) -> bool:
    return not (model is None or isinstance(model, str))


def _picked(task: SearchTask, chosen: Judge | None, candidates: Sequence[SketchSpace], seed: int) -> Guess:
    """chosen: what judges; None where no model knows the target."""
    rng = np.random.default_rng(seed)
    if chosen is None:
        return _by_estimate(task, candidates, f"no model knows {task.target.kind}", rng)
    judge = chosen.model
    score = partial(_scores, judge)
    spaces = _promising(candidates, score, rng)
    hall = _searched(spaces, score, rng)
    if not len(hall.members):
        return replace(as_declared(task, "no program of its sketches is legal"), refused=True)
    place, regret = least_regret(_opinions(judge, hall.features))
    sure = AGREED * math.exp(-regret)
    if sure >= SURE or math.isinf(regret):
        return Guess(_program(spaces, hall, place), f"chosen by {chosen.name}", None if math.isinf(regret) else sure)
    return _by_estimate(task, candidates, "the model is not sure", rng)


def _by_estimate(task: SearchTask, candidates: Sequence[SketchSpace], why: str, rng: np.random.Generator) -> Guess:
    """The program with the fewest estimated cycles."""
    said = f"chosen by the estimate, as {why}"
    if task.target.estimates and sum(map(_programs, candidates)) <= ALL:
        found = _of_all(candidates)
        if found is not None:
            return Guess(found, said, None)
    spaces = _promising(candidates, estimated_scores, rng)
    estimated = _searched(spaces, estimated_scores, rng)
    if not len(estimated.members):
        return replace(as_declared(task, "no program of its sketches is legal"), refused=True)
    return Guess(_program(spaces, estimated, int(np.argmax(estimated.scores))), said, None)


def _of_all(candidates: Sequence[SketchSpace]) -> Best | None:
    """The legal program that a target's own estimate gives the fewest cycles, of all that there are; None where none is legal."""
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
    """The plain loops of the declaration, which always run. Raises ScheduleError where even they do not fit the target's memories."""
    plain = Sketch(task.dag)
    check_memories(plain.lower_row(()), task.target)
    return Guess(Best(plain, (), math.inf), f"the declaration as it is, as {why}", None)


def least_regret(opinions: NDArray[np.float64]) -> tuple[int, float]:
    """The program that no judge finds much slower than its own favourite, and by how much one does at most, in log time.

    opinions: log scores, [judges, n], n >= 1. Of one judge nothing can be said: the regret is then infinite.
    """
    worst = (opinions.max(axis=1, keepdims=True) - opinions).max(axis=0)
    place = int(np.argmin(worst))
    return place, float(worst[place]) if len(opinions) > 1 else math.inf


def _opinions(judge: CostModel, features: FeatureRows) -> NDArray[np.float64]:
    """Log scores by each network, or by whatever else judges, `[judges, n]`."""
    if not isinstance(judge, NetworkModel):
        return _logs(judge.predict(features))[None, :]
    return _with_estimate(judge.opinions(features), features)


def _scores(judge: CostModel, features: FeatureRows) -> NDArray[np.float64]:
    """What a search goes by, `[n]`. Other models than networks are taken at their word: their scores may be of any sign, and need not be speeds."""
    if not isinstance(judge, NetworkModel):
        return judge.predict(features)
    return np.exp(_with_estimate(judge.predict(features), features))


def _with_estimate(scores: NDArray[np.float64], features: FeatureRows) -> NDArray[np.float64]:
    """Log scores of networks, `[..., n]`, with the part that the estimate has in them."""
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
        tried = list(families)[: min(TRIED, fits)]
    best = _ranked(families, tried, score, rng)
    combined = [family for family in families if family not in tried and _combines(family, best[:COMBINED])][: min(TRIED, fits - FAMILIES)]
    if combined:
        best = _ranked(families, [*best[:FAMILIES], *combined], score, rng)
    return [space for family in best[:FAMILIES] for space in families[family]][: min(SKETCHES, fits)]


def _kept_stages(space: SketchSpace) -> int:
    """Stages of a sketch that are computed somewhere, and not again at each use."""
    return sum(not isinstance(stage.placement, Inlined) for stage in space.sketch.state.stages)


def _ranked(families: Mapping[_Family, Sequence[SketchSpace]], among: Sequence[_Family], score: Score, rng: np.random.Generator) -> list[_Family]:
    """Some families, the best first, by one sketch of each."""
    hall = _searched([families[family][0] for family in among], score, rng)
    best = np.full(len(among), -np.inf)
    np.maximum.at(best, hall.members.owners(), hall.scores)
    return [among[place] for place in np.argsort(-best, kind="stable").tolist()]


def _family(space: SketchSpace) -> _Family:
    """The same for sketches that differ in where stages are computed only."""
    names = [stage.name for stage in space.sketch.dag.stages]
    steps: dict[str, list[Step]] = {}
    for step in space.sketch.steps:
        if not isinstance(step, PLACING):
            steps.setdefault(_declared(step.stage, names), []).append(step)
    return space.algorithm, tuple((name, tuple(done)) for name, done in sorted(steps.items()))


def _declared(stage: str, names: Sequence[str]) -> str:
    """The stage of the declaration that this one was made of: the tile of C is C_local."""
    return max((name for name in names if stage.startswith(name)), key=len, default=stage)


def _differences(one: _Family, other: _Family) -> int:
    """Stages that rules did other things to."""
    return len({name for name, _ in set(one[1]) ^ set(other[1])})


def _combines(family: _Family, best: Sequence[_Family]) -> bool:
    """Whether each of its stages is as in one of the best of its algorithm."""
    known = {stage for algorithm, stages in best if algorithm == family[0] for stage in stages}
    return bool(known) and set(family[1]) <= known


def _searched(spaces: Sequence[SketchSpace], score: Score, rng: np.random.Generator) -> Hall:
    sampled = [SampledSpace(space) for space in spaces]
    nothing = [np.zeros(0, np.uint64)] * len(spaces)
    chances = np.ones(len(spaces))
    stages = max(len(space.sketch.state.stages) for space in spaces)
    search = replace(SEARCH, population=max(SEARCH.population * STATEMENTS // max(stages, STATEMENTS), 2 * KEPT))
    start = sample_population(sampled, search.population, chances, rng, nothing)
    return evolve(sampled, score, start, Quest.anywhere(sampled, KEPT), rng, search)


def _program(spaces: Sequence[SketchSpace], hall: Hall, place: int) -> Best:
    space, row = hall.members.member(place)
    return Best(spaces[space].sketch, row, math.inf, origin_of(spaces[space].algorithm))
