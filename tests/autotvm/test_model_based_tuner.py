"""When a model is fitted, and what a plan contains."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.autotvm import ConfigEntity, ConfigSpace, MeasureInput, MeasureResult, Task
from ansor.compat.autotvm.model_based_tuner import ModelBasedTuner, Scores, diverse
from ansor.errors import ConfigError


class Model:
    """Remembers what it was given."""

    def __init__(self) -> None:
        self.fits: list[int] = []
        self.base: Model | None = None
        self.records = 0

    def fit(self, xs: Sequence[int], ys: Sequence[float], plan_size: int) -> None:
        assert len(xs) == len(ys) and plan_size == 20
        self.fits.append(len(xs))

    def fit_log(self, records: Iterable[tuple[MeasureInput, MeasureResult]], plan_size: int, min_seed_records: int = 500) -> bool:
        self.records = len(list(records))
        return self.records >= min_seed_records

    def predict(self, xs: Sequence[int], output_margin: bool = False) -> NDArray[np.float64]:
        return np.zeros(len(xs))

    def load_basemodel(self, base_model: "Model") -> None:
        self.base = base_model

    def spawn_base_model(self) -> "Model":
        return Model()


class Highest:
    """Returns the highest indices."""

    def __init__(self) -> None:
        self.asked: list[tuple[Scores, int]] = []

    def find_maximums(self, model: Scores, num: int, exclusive: Collection[int]) -> list[int]:
        self.asked.append((model, num))
        return [index for index in range(999, -1, -1) if index not in exclusive][:num]

    def reset(self) -> None:
        self.asked.clear()


def space() -> ConfigSpace:
    made = ConfigSpace()
    for name in "abc":
        made.define_knob(name, range(10))
    return made


def tuner(ratio: float | None = None, seed: int = 0) -> tuple[ModelBasedTuner, Model, Highest]:
    model, optimizer = Model(), Highest()
    return ModelBasedTuner(space(), model, optimizer, 20, ratio, seed=seed), model, optimizer


def tell(made: ModelBasedTuner, indices: Sequence[int], cost: float | None = 1.0) -> None:
    inputs = [MeasureInput("llvm", Task("x"), made.space.get(index)) for index in indices]
    made.update(inputs, [MeasureResult((1e9,), 4, 0, 0) if cost is None else MeasureResult((cost,), 0, 0, 0)] * len(inputs))


def indices(made: ModelBasedTuner, number: int) -> list[int]:
    return [config.index for config in made.next_batch(number)]


def test_plans_follow_after_enough_results() -> None:
    made, model, optimizer = tuner()
    first = indices(made, 20)
    assert max(first) < 999 and len(set(first)) == 20  # random ones
    tell(made, first[:19])
    assert not model.fits
    tell(made, first[19:])
    assert model.fits == [20] and optimizer.asked == [(model, 20)]
    plan = indices(made, 20)
    expected = [index for index in range(999, -1, -1) if index not in first][:19]
    assert plan[:19] == expected and plan[19] < 970  # the last 5 % of 20 are random
    tell(made, plan)
    assert model.fits == [20, 40]


def test_failures_alone_do_not_fit_the_model() -> None:
    made, model, _ = tuner()
    tell(made, indices(made, 30), None)
    assert not model.fits
    tell(made, indices(made, 1))
    assert model.fits == [31] and made.ys[:30] == [0.0] * 30 and made.ys[30] == 1.0


def test_an_exhausted_plan_continues_at_random_through_the_space() -> None:
    made, _, _ = tuner()
    tell(made, indices(made, 20))
    given = indices(made, 2000)
    assert len(given) == 980 and len(made.visited) == 1000 and not made.has_next() and made.next_batch(1) == []


def test_results_from_elsewhere_count() -> None:
    made, model, _ = tuner()
    tell(made, range(20))
    assert made.xs == list(range(20)) and made.visited == set(range(20)) and model.fits == [20]


def test_results_count_by_their_values() -> None:
    """A log's index may come from another version of the template."""
    made, _, _ = tuner()
    values = made.space.get(321).to_json_dict()
    config = ConfigEntity.from_json_dict({**values, "index": 7})  # type: ignore[dict-item]  # what JSON can hold
    made.update([MeasureInput("llvm", Task("x"), config)], [MeasureResult((0.5,), 0, 0, 0)])
    assert made.xs == [321] and made.ys == [2.0] and made.visited == {321}
    with pytest.raises(ConfigError, match="which is not in this space"):
        made.update([MeasureInput("llvm", Task("x"), ConfigEntity(3, None, {}))], [MeasureResult((0.5,), 0, 0, 0)])


def test_diverse_plans() -> None:
    made, _, optimizer = tuner(ratio=2.5)
    tell(made, range(20))
    assert optimizer.asked[0][1] == 50 and len(made.trials) == 20
    knobs = [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]]
    assert diverse([50, 51, 52, 53, 54], knobs, 3) == [50, 53, 54] and diverse([50, 51], knobs[:2], 9) == [50, 51]


def test_history() -> None:
    made, model, optimizer = tuner()
    records = [(MeasureInput("llvm", Task("x"), space().get(0)), MeasureResult((1.0,), 0, 0, 0))] * 10
    made.load_history(records, min_seed_records=11)
    assert model.base is None and not made.trials
    made.load_history(records, min_seed_records=10)
    assert model.base is not None and model.base.records == 10 and optimizer.asked == [(model.base, 20)]
    assert indices(made, 5) == [999, 998, 997, 996, 995]
    made.load_history(records, min_seed_records=10)
    assert len(optimizer.asked) == 1  # there is a plan


def test_the_same_seed_gives_the_same_configurations() -> None:
    assert indices(tuner(seed=4)[0], 30) == indices(tuner(seed=4)[0], 30) != indices(tuner(seed=5)[0], 30)


@pytest.mark.parametrize("plan_size, ratio", [(0, None), (20, 0.5)])
def test_mistakes(plan_size: int, ratio: float | None) -> None:
    with pytest.raises(ConfigError, match=f"plan_size={plan_size}, diversity_filter_ratio={ratio}"):
        ModelBasedTuner(space(), Model(), Highest(), plan_size, ratio)
