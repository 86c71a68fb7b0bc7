import numpy as np
import pytest

from ansor.dataset.evaluate import Quality, mean_quality, quality
from ansor.dataset.examples import Examples
from ansor.dataset.operators import DatasetTask
from ansor.ir.feature_rows import FeatureRows

TASK = DatasetTask("matmul", "blas", (("rows", 4),), "")


def examples(seconds: list[float]) -> Examples:
    rows = np.arange(len(seconds), dtype=np.float32)[:, None]
    return Examples(TASK, FeatureRows(rows, np.arange(len(seconds)), len(seconds)), np.array(seconds))


def test_a_perfect_score_and_its_opposite() -> None:
    tasks = [examples([4.0, 2.0, 1.0]), examples([8.0, np.inf, 4.0, 1.0])]
    times = {len(one): np.where(np.isfinite(one.seconds), one.seconds, 1e9) for one in tasks}
    best = quality(lambda features: 1 / times[features.count], tasks)
    assert (best.tasks, best.pairwise, best.peak1, best.peak5) == (2, 1.0, 1.0, 1.0) and best.rmse == pytest.approx(0.0, abs=1e-6)
    worst = quality(lambda features: times[features.count], tasks)
    assert worst.pairwise == 0.0 and worst.peak1 == pytest.approx((0.25 + 0.0) / 2)


def test_each_task_counts_the_same() -> None:
    parts = [Quality(1, 0.0, 1.0, 1.0, 1.0), Quality(3, 0.4, 0.6, 0.2, 0.6)]
    found = mean_quality(parts)
    assert found.tasks == 4 and (found.rmse, found.pairwise, found.peak1, found.peak5) == pytest.approx((0.3, 0.7, 0.4, 0.7))
