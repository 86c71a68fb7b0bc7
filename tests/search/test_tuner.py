import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from ansor.cost_model.base import CostModel
from ansor.cost_model.lightgbm_model import LightGBMModel
from ansor.cost_model.random_model import RandomModel
from ansor.search.evolution import EvolutionOptions
from ansor.search.tuner import Outcome, Pick, Tuner, TunerOptions
from tests.search.synthetic import BowlSpace, MatmulSpace

pytestmark = pytest.mark.lightgbm

QUICK = TunerOptions(evolution=EvolutionOptions(population=256, generations=3))
Spaces = Sequence[BowlSpace | MatmulSpace]


def bowls() -> list[BowlSpace]:
    return [BowlSpace((40,) * 5, (11, 30, 7, 22, 39)), BowlSpace((40,) * 5, (3, 9, 33, 2, 20), floor=4.0)]


def quick_model() -> LightGBMModel:
    return LightGBMModel(trees=20)


def measured(spaces: Spaces, picks: Sequence[Pick]) -> list[Outcome]:
    return [Outcome(pick, float(spaces[pick.space].seconds(np.array([pick.row]))[0])) for pick in picks]


def tuned(spaces: Spaces, model: CostModel, trials: int, seed: int = 0, batch: int = 16,
          options: TunerOptions = QUICK) -> tuple[Tuner, list[Pick]]:
    tuner, asked = Tuner(spaces, model, seed=seed, options=options), []
    while tuner.trials < trials and (picks := tuner.ask(min(batch, trials - tuner.trials))):
        asked += picks
        tuner.tell(measured(spaces, picks))
    return tuner, asked


def best_seconds(tuner: Tuner) -> float:
    assert tuner.best is not None and tuner.best.cost is not None
    return tuner.best.cost


def test_beats_random_search_at_the_same_number_of_trials() -> None:
    ratios = []
    for seed in range(3):
        guided, _ = tuned([MatmulSpace(), MatmulSpace(packed=True)], quick_model(), 64, seed)
        blind, _ = tuned([MatmulSpace(), MatmulSpace(packed=True)], RandomModel(), 64, seed)
        ratios.append(best_seconds(blind) / best_seconds(guided))
    assert np.exp(np.mean(np.log(ratios))) > 1.05


def test_never_asks_twice_and_first_round_covers_all_spaces() -> None:
    spaces = bowls()
    _, asked = tuned(spaces, quick_model(), 80)
    assert len(set(asked)) == len(asked) == 80
    assert Counter(pick.space for pick in asked[:16]) == {0: 8, 1: 8}


def test_hopeless_spaces_get_fewer_picks_but_some() -> None:
    _, asked = tuned(bowls(), quick_model(), 96)
    later = Counter(pick.space for pick in asked[32:])
    assert 0 < later[1] < later[0] / 2


def test_rounds_may_overlap() -> None:
    spaces = bowls()
    tuner = Tuner(spaces, quick_model(), options=QUICK)
    first, second = tuner.ask(8), tuner.ask(8)
    assert not set(first) & set(second)
    tuner.tell(measured(spaces, second[:5]))
    tuner.tell(measured(spaces, first))
    assert not set(tuner.ask(8)) & set(first + second)


@pytest.mark.parametrize("told_at_once", [True, False])
def test_resumed_run_continues_as_the_whole_one(told_at_once: bool) -> None:
    spaces = bowls()
    whole, asked = tuned(spaces, quick_model(), 64)
    resumed = Tuner(spaces, quick_model(), options=QUICK)
    old = measured(spaces, asked[:32])
    for part in [old] if told_at_once else [old[:16], old[16:]]:
        resumed.tell(part)
    again = resumed.ask(16)
    assert again == asked[32:48]
    resumed.tell(measured(spaces, again))
    assert resumed.ask(16) == asked[48:]


def test_a_record_told_twice_counts_once() -> None:
    spaces = bowls()
    tuner = Tuner(spaces, quick_model(), options=QUICK)
    outcomes = measured(spaces, tuner.ask(4))
    tuner.tell(outcomes)
    tuner.tell(outcomes)
    assert tuner.trials == 4


def test_same_picks_in_any_process() -> None:
    script = (
        "from tests.search.test_tuner import *\n"
        "print(tuned(bowls(), quick_model(), 48, seed=7)[1])"
    )
    printed = [
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=os.getcwd(),
                       env={**os.environ, "PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": seed}).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1] == f"{tuned(bowls(), quick_model(), 48, seed=7)[1]}\n"


def test_seeds_differ() -> None:
    assert Tuner(bowls(), RandomModel(), seed=1).ask(8) != Tuner(bowls(), RandomModel(), seed=2).ask(8)


@pytest.mark.parametrize("batch", [1, 5, 64])
def test_small_spaces_are_tried_in_full_and_then_it_says_so(batch: int) -> None:
    spaces = [BowlSpace((3, 2), (1, 1)), BowlSpace((1,), (0,)), BowlSpace((), ()), BowlSpace((4, 2), (0, 0), even=True)]
    tuner, asked = tuned(spaces, quick_model(), 1000, batch=batch)
    assert Counter(pick.space for pick in asked) == {0: 6, 1: 1, 2: 1, 3: 4}
    assert tuner.exhausted and tuner.finished == "every program of the search space has been tried"
    assert tuner.ask(4) == []
    assert best_seconds(tuner) == pytest.approx(1e-3)


def test_no_legal_program() -> None:
    space = BowlSpace((50,) * 6, (0,) * 6)
    space.legal = lambda rows: np.zeros(len(rows), bool)  # type: ignore[method-assign]
    tuner = Tuner([space], quick_model(), options=QUICK)
    assert tuner.ask(4) == [] and tuner.finished == "no new legal program was found" and tuner.best is None


@pytest.mark.parametrize("seconds", [None, math.nan, math.inf, 0.0, -1.0])
def test_rounds_of_failures_go_on(seconds: float | None) -> None:
    spaces = bowls()
    tuner = Tuner(spaces, quick_model(), options=QUICK)
    for _ in range(3):
        picks = tuner.ask(8)
        assert len(picks) == 8
        tuner.tell([Outcome(pick, seconds, "timeout") for pick in picks])
    assert tuner.best is None and tuner.trials == 24
    tuner.tell(measured(spaces, tuner.ask(8)))
    assert len(tuner.ask(8)) == 8 and tuner.best is not None


def test_failing_space_gets_fewer_picks_than_a_working_one() -> None:
    spaces = bowls()
    tuner, later = Tuner(spaces, quick_model(), options=QUICK), Counter[int]()
    for number in range(5):
        picks = tuner.ask(16)
        tuner.tell([Outcome(pick, None, "compile") if pick.space == 0 else outcome
                    for pick, outcome in zip(picks, measured(spaces, picks), strict=True)])
        if number > 1:
            later.update(pick.space for pick in picks)
    assert later[0] < later[1] / 3


def test_a_share_of_the_budget_stands_for_trials_out_of_so_many() -> None:
    def after_one_round(budget: int, share: float | None) -> list[Pick]:
        options = TunerOptions(evolution=QUICK.evolution, budget=budget)
        tuner, _ = tuned(bowls(), quick_model(), 16, options=options)
        return tuner.ask(16, share)

    early, late = after_one_round(1000, None), after_one_round(20, None)
    assert early != late
    assert [after_one_round(1000, share) for share in (0.0, 0.49, 0.5, 1.0)] == [early, early, late, late]
    assert after_one_round(20, 0.1) == early


def test_early_stop() -> None:
    spaces = bowls()
    tuner = Tuner(spaces, RandomModel(), options=TunerOptions(early_stop=10))
    tuner.tell([Outcome(pick, 1.0) for pick in tuner.ask(10)])
    assert tuner.finished is None
    tuner.tell([Outcome(pick, 2.0) for pick in tuner.ask(1)])
    assert tuner.finished == "no better program in 10 trials"


def test_a_fitted_model_guides_the_first_round() -> None:
    spaces = bowls()
    model = quick_model()
    tuned(spaces, model, 96)
    tuner = Tuner(spaces, model, seed=5, options=QUICK)
    tuner.tell(measured(spaces, tuner.ask(16)))
    blind, _ = tuned(spaces, RandomModel(), 16, seed=5)
    assert best_seconds(tuner) < best_seconds(blind)


def test_models_that_answer_nan_do_no_harm() -> None:
    class Broken(RandomModel):
        fitted = True

        def predict(self, features: object) -> np.ndarray:
            return np.full(features.count, np.nan)  # type: ignore[attr-defined]

    tuner, asked = tuned(bowls(), Broken(), 32)
    assert len(set(asked)) == 32 and not tuner.exhausted


@pytest.mark.parametrize("pick", [Pick(2, (0,) * 5), Pick(0, (0,) * 4), Pick(0, (40, 0, 0, 0, 0)), Pick(-1, ())])
def test_foreign_rows_are_refused(pick: Pick) -> None:
    with pytest.raises(ValueError, match="another task or version"):
        Tuner(bowls(), RandomModel()).tell([Outcome(pick, 1.0)])


def test_no_space_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to search"):
        Tuner([], RandomModel())


def test_a_suggested_program_is_asked_for_first_and_once() -> None:
    tuner, other = (Tuner(bowls(), quick_model(), options=QUICK) for _ in range(2))
    wanted = other.ask(5)[4]
    tuner.suggest(wanted)
    picks = tuner.ask(8)
    assert picks[0] == wanted and len(set(picks)) == 8
    tuner.suggest(wanted)
    assert wanted not in tuner.ask(8)
    with pytest.raises(ValueError, match="records of another task or version do not apply"):
        tuner.suggest(Pick(0, (10**6,)))
