"""The tuner of one task: ask it what to measure, tell it the results. No I/O, no clock; start here.

The random numbers of an `ask` depend on the seed and on the number of earlier programs, not on earlier draws. So a tuner that is first told old records
continues like the interrupted one would have.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.base import CostModel
from ansor.search.diversity import spread
from ansor.search.evolution import EvolutionOptions, HallOfFame, SearchGoal, evolve
from ansor.search.population import Population, allotted, joined, sample_population
from ansor.search.sampling import SampledSpace
from ansor.search.space import Space

SHORTLIST = 32
"""The number of programs that evolution keeps per pick, so that picks can be spread out."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A program to measure: a row of the space with this index."""

    space: int
    row: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a pick: its cost, or None and the kind of failure."""

    pick: Pick
    cost: float | None
    failure: str | None = None

    @property
    def valid(self) -> bool:
        """Whether the cost is usable: positive and finite."""
        return self.cost is not None and math.isfinite(self.cost) and self.cost > 0


@dataclass(frozen=True)
class Halves:
    """A number for the first half of the budget, and one for the second."""

    early: float
    late: float

    def at(self, late: bool) -> float:
        """The number that applies."""
        return self.late if late else self.early


@dataclass(frozen=True, slots=True, kw_only=True)
class TunerOptions:
    """`epsilon`: share of random picks. `budget`: expected trials (`ask` is told about a time budget); past half of it, the search focuses on the best rows.

    `anchors`: how many of the best measured rows are mutated in every generation; `local_share`: the share of the
    population that these mutations make up, before and after half of the budget. `explore`: the share of model-guided picks
    that go to the best-scored program of a little-tried sketch. `spread`: how much of its score (in powers of e) a pick loses
    if it resembles an earlier pick, before and after half of the budget. `early_stop`: finish after this many trials without a better program.
    """

    evolution: EvolutionOptions = field(default_factory=EvolutionOptions)
    epsilon: float = 0.05
    explore: float = 0.1
    budget: int = 128
    anchors: int = 5
    local_share: Halves = Halves(0.2, 0.5)
    spread: Halves = Halves(1.0, 0.3)
    early_stop: int | None = None


class Tuner:
    """Searches several spaces (the sketches of one task) for the fastest program.

    `task`: the number of this task in a model shared by several tuners. Raises ValueError without spaces.
    """

    def __init__(self, spaces: Sequence[Space], model: CostModel, *, seed: int = 0,
                 options: TunerOptions | None = None, task: int = 0) -> None:
        if not spaces:
            raise ValueError("asked to tune a task without a sketch: there is nothing to search; fix the rules")
        self.options = options or TunerOptions()
        self._spaces = [SampledSpace(space) for space in spaces]
        self._model = model
        self._seed = seed
        self._task = task
        self._known: list[set[int]] = [set() for _ in spaces]  # keys of rows told or asked for
        self._pending: set[Pick] = set()
        self._suggested: list[Pick] = []
        self._outcomes: list[Outcome] = []
        self._best: Outcome | None = None
        self._best_at = 0
        self._exhausted = False

    @property
    def best(self) -> Outcome | None:
        """The fastest valid program told so far."""
        return self._best

    @property
    def trials(self) -> int:
        """The number of programs told so far."""
        return len(self._outcomes)

    @property
    def exhausted(self) -> bool:
        """Whether the last `ask` found fewer new programs than asked for: nothing is left to try."""
        return self._exhausted

    @property
    def finished(self) -> str | None:
        """Why asking again is pointless, as a sentence, or None."""
        if self._exhausted:
            exact = all(sampled.listed is not None for sampled in self._spaces)
            return "every program of the search space has been tried" if exact else "no new legal program was found"
        patience = self.options.early_stop
        if patience is not None and self._best is not None and self.trials - self._best_at >= patience:
            return f"no better program in {self.trials - self._best_at} trials"
        return None

    def suggest(self, pick: Pick) -> bool:
        """Let the next `ask` begin with this program. Returns False, without effect, if it was asked for or told before. ValueError for a foreign row."""
        self._check(pick)
        fresh = self._key(pick) not in self._known[pick.space]
        if fresh:
            self._suggested.append(pick)
        return fresh

    def ask(self, count: int, share: float | None = None) -> list[Pick]:
        """Up to `count` programs never asked for or told before, the most promising first; fewer mean that the search is `exhausted`.

        share: the used share of the budget, 0 to 1, if it is not limited by trials; None: trials told / `TunerOptions.budget`.
        """
        suggested, self._suggested = self._suggested[:count], self._suggested[count:]
        picks = [*self._asked_for(suggested), *self._asked_for(self._found(count - len(suggested), share))]
        self._exhausted = len(picks) < count
        return picks

    def _asked_for(self, picks: list[Pick]) -> list[Pick]:
        for pick in picks:
            self._note(pick)
            self._pending.add(pick)
        return picks

    def _found(self, count: int, share: float | None) -> list[Pick]:
        """The programs that the search finds."""
        if not count:
            return []
        known = [np.sort(np.fromiter(keys, np.uint64, len(keys))) for keys in self._known]
        rng = np.random.default_rng([self._seed, self._task, len(self._outcomes) + len(self._pending)])
        picks = self._guided(count, share, known, rng) if self._model.fitted else []
        taken = self._keys_with(known, picks)
        rest = sample_population(self._spaces, count - len(picks), self._chances(), rng, taken)
        return picks + _interleaved(rest, rng)

    def tell(self, outcomes: Sequence[Outcome]) -> None:
        """Report results of picks or, before the first `ask`, those of an earlier run. Raises ValueError for a foreign row."""
        fresh = [outcome for outcome in outcomes if self._accepted(outcome)]
        if not fresh:
            return
        for outcome in fresh:
            self._outcomes.append(outcome)
            if outcome.valid and (self._best is None or _cost(outcome) < _cost(self._best)):
                self._best, self._best_at = outcome, len(self._outcomes)
        members = self._population([outcome.pick for outcome in fresh])
        by_space = np.argsort([outcome.pick.space for outcome in fresh], kind="stable")
        told_order = np.argsort(by_space, kind="stable")  # so that one large tell has the same effect as several small ones
        seconds = np.array([_cost(outcome) for outcome in fresh])
        self._model.update(members.features(self._spaces).take(told_order), seconds, np.full(len(fresh), self._task))

    def _check(self, pick: Pick) -> None:
        if not 0 <= pick.space < len(self._spaces):
            raise ValueError(f"told of a program of space {pick.space}; this task has {len(self._spaces)}: records of "
                             "another task or version do not apply")
        sizes = self._spaces[pick.space].tables.sizes
        if len(pick.row) != len(sizes) or any(not 0 <= value < size for value, size in zip(pick.row, sizes, strict=True)):
            raise ValueError(f"told of row {pick.row} of sketch {self._spaces[pick.space].space.name}, whose choices have "
                             f"{sizes.tolist()} values: records of another task or version do not apply")

    def _accepted(self, outcome: Outcome) -> bool:
        pick = outcome.pick
        self._check(pick)
        repeated = pick not in self._pending and self._key(pick) in self._known[pick.space]
        self._pending.discard(pick)
        self._note(pick)
        return not repeated

    def _key(self, pick: Pick) -> int:
        return int(self._spaces[pick.space].tables.keys(np.array(pick.row, np.int64).reshape(1, len(pick.row)))[0])

    def _note(self, pick: Pick) -> None:
        self._known[pick.space].add(self._key(pick))

    def _population(self, picks: Sequence[Pick]) -> Population:
        rows: list[list[tuple[int, ...]]] = [[] for _ in self._spaces]
        for pick in picks:
            rows[pick.space].append(pick.row)
        return Population(tuple(np.array(block, np.int64).reshape(len(block), sampled.tables.columns)
                                for block, sampled in zip(rows, self._spaces, strict=True)))

    def _keys_with(self, known: list[NDArray[np.uint64]], picks: Sequence[Pick]) -> list[NDArray[np.uint64]]:
        added = self._population(picks)
        return [np.sort(np.concatenate([keys, sampled.tables.keys(block)]))
                for sampled, keys, block in zip(self._spaces, known, added.blocks, strict=True)]

    def _chances(self) -> NDArray[np.float64]:
        """The sampling weight of each space, `[spaces]`: 1 if untried, best of all / best of the space if measured, halved by each
        trial while all have failed; never below 0.1, so that no space starves.
        """
        best, trials = self._best_by_space()
        fastest = best.min()
        value = np.where(np.isfinite(best), fastest / best, 0.5 ** trials) if np.isfinite(fastest) else 0.5 ** trials
        return np.maximum(value, 0.1)

    def _best_by_space(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        best, trials = np.full(len(self._spaces), np.inf), np.zeros(len(self._spaces))
        for outcome in self._outcomes:
            space = outcome.pick.space
            trials[space] += 1
            best[space] = min(best[space], _cost(outcome) if outcome.valid else np.inf)
        return best, trials

    def _anchors(self) -> Population:
        """The best measured rows."""
        valid = sorted((outcome for outcome in self._outcomes if outcome.valid), key=_cost)
        return self._population([outcome.pick for outcome in valid[: self.options.anchors]])

    def _guided(self, count: int, share: float | None, known: list[NDArray[np.uint64]], rng: np.random.Generator) -> list[Pick]:
        """The model's share of `count` picks: all but the random ones."""
        wanted = min(count, int(count * (1 - self.options.epsilon) + rng.random()))
        late = len(self._outcomes) >= self.options.budget / 2 if share is None else share >= 0.5
        local_share = self.options.local_share.at(late)
        chances, anchors, evolution = self._chances(), self._anchors(), self.options.evolution
        nothing = [np.zeros(0, np.uint64)] * len(self._spaces)
        start = sample_population(self._spaces, evolution.population - len(anchors), chances, rng, nothing)
        goal = SearchGoal(SHORTLIST * wanted, known, chances, anchors, local_share)
        hall = evolve(self._spaces, self._model.predict, joined(anchors, start).distinct(self._spaces), goal, rng, evolution)
        return self._chosen(hall, wanted, late, rng)

    def _chosen(self, hall: HallOfFame, wanted: int, late: bool, rng: np.random.Generator) -> list[Pick]:
        """The best-scored programs, spread out; some are the best of a little-tried space."""
        if not len(hall.members):
            return []
        order = np.lexsort((rng.random(len(hall.scores)), -hall.scores))
        explored = self._explored(hall, order, int(wanted * self.options.explore + rng.random()), rng)
        strength = self.options.spread.at(late)
        chosen = spread(hall.features, hall.scores, order, explored, wanted, strength)
        return [Pick(*hall.members.member(int(index))) for index in chosen]

    def _explored(self, hall: HallOfFame, order: NDArray[np.int64], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        owners = hall.members.owners()[order]
        spaces, place = np.unique(owners, return_index=True)
        _, trials = self._best_by_space()
        weights = self._chances()[spaces] / (1 + trials[spaces])
        chosen = np.minimum(allotted(min(count, len(spaces)), weights, rng), 1)
        return order[place[chosen > 0]]


def _interleaved(members: Population, rng: np.random.Generator) -> list[Pick]:
    """The members as picks, in random order, so that a batch cut short still covers the spaces."""
    return [Pick(*members.member(int(index))) for index in rng.permutation(len(members))]


def _cost(outcome: Outcome) -> float:
    return outcome.cost if outcome.valid and outcome.cost is not None else math.inf
