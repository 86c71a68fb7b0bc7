"""A genetic algorithm over the digits of knobs. Source: AutoTVM 0.9, `GATuner`."""

from collections.abc import Sequence
from random import Random

from ansor.compat.autotvm.base_tuner import HasSpace, Tuner
from ansor.compat.autotvm.measured import MeasureInput, MeasureResult
from ansor.errors import ConfigError
from ansor.templates.space import ConfigEntity, ConfigSpace

_PATIENCE = 100
"""Mutations of an already seen child before drawing an unseen configuration instead: when few are left, mutations rarely find one."""


class GATuner(Tuner):
    """Proposes generations of `pop_size` unseen configurations; the next generation begins once all results of the current one are known.

    Fitness is the inverse of the mean cost, 0 after an error. The best `elite_num` of a generation and of the elites before it stay as parents. Parents
    are drawn in proportion to their fitness. A child takes its first knobs from one parent and the rest from another; every knob is redrawn with
    probability `mutation_prob`, then one at a time until the child is new. Near the end of the space, generations are smaller. The same seed and results
    give the same configurations. A batch ends with its generation; configurations requested before all its results are known are random and join it.

    Raises ConfigError if pop_size < 1, or elite_num is not in [0, pop_size], or mutation_prob not in [0, 1].
    """

    def __init__(
        self, task: HasSpace | ConfigSpace, pop_size: int = 100, elite_num: int = 3, mutation_prob: float = 0.1, *, seed: int = 0
    ) -> None:  # fmt: skip
        super().__init__(task)
        if pop_size < 1 or not 0 <= elite_num <= pop_size or not 0 <= mutation_prob <= 1:
            asked = f"pop_size={pop_size}, elite_num={elite_num}, mutation_prob={mutation_prob}"
            raise ConfigError(f"asked for {asked}; give pop_size >= 1, elite_num from 0 to pop_size, and a probability")
        self._pop_size, self._elite_num, self._mutation_prob = pop_size, elite_num, mutation_prob
        self._seed, self._dims = seed, self.space.dims
        self._start()

    def reset(self) -> None:
        super().reset()
        self._start()

    def _start(self) -> None:
        self._rng = Random(self._seed)
        self._visited: set[int] = set()
        self._waiting: list[int] = []  # of this generation, not returned yet
        self._generation: list[int] = []
        self._scores: dict[int, float] = {}  # of this generation
        self._elites: dict[int, float] = {}
        self._begin([self._see(self._unseen()) for _ in range(self._room())])

    def has_next(self) -> bool:
        return bool(self._waiting) or self._room() > 0

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        if not self._waiting:
            strangers = [self._see(self._unseen()) for _ in range(min(batch_size, self._room()))]
            self._generation += strangers
            self._waiting += strangers
        given, self._waiting = self._waiting[:batch_size], self._waiting[batch_size:]
        return [self.space.get(index) for index in given]

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Process results of this generation's configurations; others, such as a log's, are ignored."""
        members = set(self._generation)
        for inp, result in zip(inputs, results, strict=True):
            if inp.config.index in members:
                self._scores[inp.config.index] = 1 / max(result.mean_cost, 1e-12)
        if self._generation and len(self._scores) == len(self._generation):
            self._breed()

    def _room(self) -> int:
        """How many more configurations a generation may have."""
        return min(self._pop_size, self.space.range_length - len(self._visited))

    def _begin(self, generation: list[int]) -> None:
        self._generation, self._waiting, self._scores = generation, list(generation), {}

    def _breed(self) -> None:
        pool = self._elites | self._scores
        self._elites = dict(sorted(pool.items(), key=lambda item: -item[1])[: self._elite_num])
        self._begin([self._see(self._child(pool)) for _ in range(self._room())])

    def _child(self, pool: dict[int, float]) -> int:
        one = self._drawn(pool)
        other = self._drawn({index: score for index, score in pool.items() if index != one} or pool)
        cut = self._rng.randrange(len(self._dims))
        knob = self.space.point2knob(one)[:cut] + self.space.point2knob(other)[cut:]
        for place, size in enumerate(self._dims):
            if self._rng.random() < self._mutation_prob:
                knob[place] = self._rng.randrange(size)
        for _ in range(_PATIENCE):
            if self.space.knob2point(knob) not in self._visited:
                return self.space.knob2point(knob)
            place = self._rng.randrange(len(self._dims))
            knob[place] = self._rng.randrange(self._dims[place])
        return self._unseen()

    def _drawn(self, pool: dict[int, float]) -> int:
        weights = list(pool.values()) if any(pool.values()) else None
        return self._rng.choices(list(pool), weights)[0]

    def _unseen(self) -> int:
        return self.space.get_rand_index(to_exclude=self._visited, rng=self._rng)

    def _see(self, index: int) -> int:
        self._visited.add(index)
        return index
