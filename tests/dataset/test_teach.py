import numpy as np
import pytest

from ansor.cost_model.random_model import RandomModel
from ansor.cost_model.training_set import estimated_scores
from ansor.dataset.operators import dataset_tasks
from ansor.dataset.teach import taught
from ansor.ir.feature_rows import FeatureRows
from ansor.targets.base import parse_target

TARGET = parse_target("cpu -mcpu=znver3 -threads=1")
SOFTMAX = [task for task in dataset_tasks() if task.kind == "softmax"][:2]


class Estimate(RandomModel):
    """Scores by the estimate."""

    def predict(self, features: FeatureRows) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return estimated_scores(features)


def test_programs_have_the_times_that_the_model_predicts() -> None:
    found = list(taught(SOFTMAX, TARGET, Estimate(), programs=40))
    assert [one.task for one in found] == SOFTMAX and all(len(one) == 40 for one in found)
    for one in found:
        np.testing.assert_array_equal(one.seconds, 1 / estimated_scores(one.features))


def test_half_of_the_programs_are_among_the_best() -> None:
    one = next(taught(SOFTMAX, TARGET, Estimate(), programs=40))
    evolved, drawn = one.seconds[:20], one.seconds[20:]
    assert np.median(evolved) < np.quantile(drawn, 0.25)


def test_the_same_seed_gives_the_same_programs() -> None:
    one, same, other = (next(taught(SOFTMAX, TARGET, Estimate(), programs=16, seed=seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.features.rows, same.features.rows)
    assert not np.array_equal(one.features.rows, other.features.rows)


def test_an_untrained_model_cannot_teach() -> None:
    class Silent(RandomModel):
        def predict(self, features: FeatureRows) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
            return np.zeros(features.count)

    with pytest.raises(ValueError, match="untrained model"):
        next(taught(SOFTMAX, TARGET, Silent(), programs=16))
