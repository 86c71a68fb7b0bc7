"""Tuners: which configurations they return, in which order, and each only once."""

from collections import Counter
from collections.abc import Callable, Iterator
from statistics import median
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.autotvm import ConfigEntity, ConfigSpace, GATuner, GridSearchTuner, MeasureInput, MeasureResult, RandomTuner, Task
from ansor.compat.autotvm.base_tuner import Tuner
from ansor.errors import ConfigError


def space(*dims: int) -> ConfigSpace:
    made = ConfigSpace()
    for place, size in enumerate(dims):
        made.define_knob(f"k{place}", range(size))
    return made


def matmul() -> ConfigSpace:
    made = ConfigSpace()
    made.define_split("tile_y", 512, num_outputs=2)
    made.define_split("tile_x", 512, num_outputs=2)
    return made


def tell(tuner: Tuner, batch: list[ConfigEntity], cost: Callable[[ConfigEntity], float | None]) -> None:
    inputs = [MeasureInput("llvm", Task("x"), config) for config in batch]
    costs = [cost(config) for config in batch]
    tuner.update(inputs, [MeasureResult((1e9,), 4, 0, 0) if seconds is None else MeasureResult((seconds,), 0, 0, 0) for seconds in costs])


def visited(tuner: Tuner, trials: int, batch_size: int, cost: Callable[[ConfigEntity], float | None] = lambda config: 1.0) -> list[int]:
    """The indices in the order in which they are returned."""
    found: list[int] = []
    while tuner.has_next() and len(found) < trials:
        batch = tuner.next_batch(min(batch_size, trials - len(found)))
        assert 0 < len(batch) <= batch_size
        found += [config.index for config in batch]
        tell(tuner, batch, cost)
    return found


def test_grid_search_is_in_order() -> None:
    assert visited(GridSearchTuner(matmul()), 1000, 7) == list(range(100))
    assert visited(GridSearchTuner(SimpleNamespace(config_space=matmul())), 5, 2) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", [GridSearchTuner, RandomTuner])
def test_ranges_include_their_last_index(kind: type[GridSearchTuner]) -> None:
    tuner = kind(matmul(), range_idx=(8, 15))
    assert (tuner.range_length, tuner.index_offset) == (8, 8)
    assert len(tuner.next_batch(7)) == 7 and tuner.counter == 7 and tuner.has_next()
    assert len(tuner.next_batch(7)) == 1 and not tuner.has_next() and tuner.next_batch(7) == []
    assert sorted(visited(kind(matmul(), range_idx=(8, 15)), 99, 3)) == list(range(8, 16))


@pytest.mark.parametrize("range_idx", [(8, 100), (-1, 5), (9, 8)])
def test_ranges_must_be_within_the_space(range_idx: tuple[int, int]) -> None:
    with pytest.raises(ConfigError, match=f"indices {range_idx[0]} to {range_idx[1]} of a space of 100"):
        RandomTuner(matmul(), range_idx)


@given(st.integers(1, 200), st.integers(1, 50), st.integers(0, 5))
def test_random_visits_each_once(size: int, batch_size: int, seed: int) -> None:
    found = visited(RandomTuner(space(size), seed=seed), 10_000, batch_size)
    assert sorted(found) == list(range(size))


def test_random_orders_are_equally_likely() -> None:
    orders = Counter(tuple(visited(RandomTuner(space(4), seed=seed), 4, 1)) for seed in range(4800))
    assert len(orders) == 24 and min(orders.values()) > 140 and max(orders.values()) < 270


def test_a_random_draw_costs_the_same_however_many_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    tuner = RandomTuner(space(1000, 1000), seed=3)
    assert visited(tuner, 5, 5) == [249523, 621429, 570665, 136758, 387926]
    monkeypatch.setattr(tuner, "visited", Unread())
    tuner.next_batch(5)


class Unread(set[int]):
    """A set that can only be added to: to read it takes longer with each draw."""

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("all visited indices are read for one draw")


def test_random_memory_grows_with_trials_only() -> None:
    tuner = RandomTuner(space(*[1000] * 30), seed=3)
    found = visited(tuner, 500, 50)
    assert len(set(found)) == 500 and max(found) > 10**88 and found == visited(RandomTuner(space(*[1000] * 30), seed=3), 500, 50)
    assert len(tuner.visited) <= 500


@pytest.mark.parametrize("dims", [(1,), (3,), (10, 10), (2, 7, 9, 2), ()])
@pytest.mark.parametrize("batch_size", [1, 7, 300])
def test_genetic_visits_each_once(dims: tuple[int, ...], batch_size: int) -> None:
    found = visited(GATuner(space(*dims), pop_size=20), 10_000, batch_size, lambda config: 1.0 + config.index if config.index % 3 else None)
    assert sorted(found) == list(range(space(*dims).range_length))


def test_genetic_when_everything_fails() -> None:
    assert len(set(visited(GATuner(space(10, 10, 10), pop_size=8), 100, 8, lambda config: None))) == 100


def test_genetic_without_results_continues_at_random() -> None:
    tuner = GATuner(space(50), pop_size=8)
    first, more, rest = tuner.next_batch(100), tuner.next_batch(5), tuner.next_batch(100)
    assert (len(first), len(more), len(rest)) == (8, 5, 8)
    tell(tuner, first + more, lambda config: 1.0)
    assert len({config.index for config in first + more + rest}) == 21 and len(tuner.next_batch(3)) == 3
    tell(tuner, [space(50).get(0)] * 3, lambda config: 1.0)  # not requested, or reported again
    assert tuner.has_next()


def test_genetic_is_reproducible() -> None:
    def cost(config: ConfigEntity) -> float:
        return 1.0 + config.index % 17

    runs = [visited(GATuner(space(9, 9, 9), pop_size=10, seed=seed), 90, 5, cost) for seed in (4, 4, 5)]
    assert runs[0] == runs[1] != runs[2]


def test_genetic_children_descend_from_the_best() -> None:
    """Without mutation, children of the only two parents with a fitness take each knob from one of them, as long as that gives new ones."""
    tuner = GATuner(space(*[50] * 6), pop_size=20, elite_num=0, mutation_prob=0.0, seed=1)
    first = tuner.next_batch(20)
    parents = [[config[f"k{place}"].val for place in range(6)] for config in (first[3], first[11])]
    tell(tuner, first, lambda config: 1.0 if config in (first[3], first[11]) else None)
    children = [[config[f"k{place}"].val for place in range(6)] for config in tuner.next_batch(20)]
    pure = [child for child in children if all(digit in {one, other} for digit, one, other in zip(child, *parents, strict=True))]
    assert 5 <= len(pure) <= 2 * 5  # one cut gives five of each kind; others were mutated until they were new


def test_genetic_parents_are_different() -> None:
    """Of 6 cuts, 5 mix two parents. If both parents were the same half of the time, about 25 of 60 children would be mixed."""
    mixed = 0
    for seed in range(60):
        tuner = GATuner(space(*[50] * 6), pop_size=2, elite_num=0, mutation_prob=0.0, seed=seed)
        parents = tuner.next_batch(2)
        tell(tuner, parents, lambda config: 1.0)
        digits = [tuner.space.point2knob(config.index) for config in (*tuner.next_batch(1), *parents)]
        mixed += all(digit in {one, other} for digit, one, other in zip(*digits, strict=True))
    assert 40 <= mixed <= 58


def test_genetic_keeps_its_elite() -> None:
    tuner = GATuner(space(30, 30, 30), pop_size=10, elite_num=3)
    costs: dict[int, float] = {}
    for _ in range(5):
        batch = tuner.next_batch(10)
        costs |= {config.index: 1.0 + (config.index * 7919) % 1000 for config in batch}
        tell(tuner, batch, lambda config: 1.0 + (config.index * 7919) % 1000)
        assert sorted(tuner._elites) == sorted(sorted(costs, key=costs.__getitem__)[:3])


def test_genetic_beats_random() -> None:
    dims = [10] * 5

    def cost(config: ConfigEntity) -> float:
        return 1.0 + sum(abs(digit - 7) for digit in space(*dims).point2knob(config.index))

    def best(tuner: Tuner) -> float:
        return min(cost(tuner.space.get(index)) for index in visited(tuner, 400, 20, cost))

    genetic = median(best(GATuner(space(*dims), pop_size=40, seed=seed)) for seed in range(5))
    assert genetic < median(best(RandomTuner(space(*dims), seed=seed)) for seed in range(5))


@pytest.mark.parametrize("pop_size, elite_num, mutation_prob", [(0, 0, 0.1), (3, 4, 0.1), (3, -1, 0.1), (3, 1, 1.5)])
def test_genetic_mistakes(pop_size: int, elite_num: int, mutation_prob: float) -> None:
    with pytest.raises(ConfigError, match=f"asked for pop_size={pop_size}, elite_num={elite_num}"):
        GATuner(matmul(), pop_size, elite_num, mutation_prob)
