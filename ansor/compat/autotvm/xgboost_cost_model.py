"""A model that scores configurations by boosted trees, anew whenever it is told more. Source: AutoTVM 0.9, `XGBoostCostModel`; the trees are LightGBM's."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ansor.compat.autotvm.boosted_trees import LOSSES, Boosting, Samples, fit_trees
from ansor.compat.autotvm.config_features import ConfigFeatures, Vector, matrix
from ansor.compat.autotvm.measured import MeasureInput, MeasureResult
from ansor.compat.autotvm.tuner import HasSpace
from ansor.errors import ConfigError
from ansor.templates.space import ConfigSpace

if TYPE_CHECKING:
    import lightgbm

_logger = logging.getLogger("autotvm")

HALF_LIFE = 64
"""Measurements that halve the weight of what was learned from a log."""

LEAST_WEIGHT = 0.05
"""Below it, what was learned from a log is dropped."""


class XGBoostCostModel:
    """Scores configurations of a task, higher is better; with loss_type "rank" only their order means something, with "reg" it is speed, 1 for the best seen.

    feature_type: itervar, knob, curve (`ConfigFeatures`); num_threads: of LightGBM, 1 by default; log_interval: trees between two lines of the logger
    "autotvm"; upper_model: the model whose features it shares. The same seed and data give the same scores.

    Raises ConfigError for another loss or feature type.
    """

    def __init__(
        self, task: HasSpace | ConfigSpace, feature_type: str = "itervar", loss_type: str = "rank", num_threads: int | None = None, log_interval: int = 25,
        upper_model: XGBoostCostModel | None = None, *, seed: int = 0,
    ) -> None:  # fmt: skip
        if loss_type not in LOSSES:
            raise ConfigError(f"asked for a cost model with loss_type={loss_type!r}; there are {', '.join(LOSSES)}")
        self.task = task
        self.feature_type, self.loss_type = feature_type, loss_type
        self.num_threads, self.log_interval, self.seed = num_threads, log_interval, seed
        self.base_model: XGBoostCostModel | None = None
        self._features: ConfigFeatures = ConfigFeatures(task, feature_type) if upper_model is None else upper_model._features
        self._trees: lightgbm.Booster | None = None
        self._width = 0
        self._told = 0
        self._fits = 0

    def fit(self, xs: Sequence[int], ys: Sequence[float], plan_size: int) -> None:
        """Learn which of the indices `xs` is how fast (`ys`: any measure of speed, 0 for a failure), and forget what was learned from other `xs`.

        Configurations that cannot be instantiated teach nothing. Raises CostModelError where LightGBM does not load.
        """
        vectors = self._features.of_indices(xs)
        self._told = len(xs)
        if self.base_model is not None and self._discount() < LEAST_WEIGHT:
            self.base_model = None
        margin = self._margin(xs)
        rows = [place for place, vector in enumerate(vectors) if vector is not None]
        speed = np.array([ys[place] for place in rows], dtype=np.float64)
        labels = speed / max(speed.max(initial=0.0), 1e-300)
        self._train([vectors[place] for place in rows], labels, np.zeros(len(rows), dtype=np.int64), margin[rows], self._boosting(8000, 20, plan_size))

    def fit_log(self, records: Iterable[tuple[MeasureInput, MeasureResult]], plan_size: int, min_seed_records: int = 500) -> bool:
        """Learn from records of the task's template, whatever its arguments. Whether there were at least `min_seed_records` with features.

        Programs are compared with those of the same target and arguments only. Raises CostModelError where LightGBM does not load.
        """
        ours = [(self._features.of_config(inp.config, _task_of(inp, self.task)), inp, result) for inp, result in records if self._is_ours(inp)]
        found = [(vector, inp, result) for vector, inp, result in ours if vector is not None]
        if len(found) < max(min_seed_records, 1):
            _logger.warning("a log with %d usable records is passed over, as min_seed_records is %d; give less, or more records", len(found), min_seed_records)
            return False
        keys = [f"{inp.target} {inp.task!r}" for _, inp, _ in found]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        order = sorted(range(len(found)), key=lambda place: numbers[keys[place]])
        groups = np.array([numbers[keys[place]] for place in order], dtype=np.int64)
        costs = np.array([found[place][2].mean_cost for place in order])
        best = np.array([costs[groups == number].min() for number in range(len(numbers))])[groups]
        labels = np.where(np.isfinite(costs), best / np.where(np.isfinite(costs), costs, 1.0), 0.0)
        self._train([found[place][0] for place in order], labels, groups, np.zeros(len(order)), self._boosting(400, 100, 2 * plan_size))
        return True

    def predict(self, xs: Sequence[int], output_margin: bool = False) -> NDArray[np.float64]:
        """A score for each index; -infinity for a configuration that cannot be instantiated. Zeros before anything is learned.

        output_margin: without meaning here, as scores are what trees sum up to.
        """
        vectors = self._features.of_indices(xs)
        scores = self._margin(xs)
        if self._trees is not None:
            scores = scores + self._trees.predict(matrix(vectors, self._width), raw_score=True, num_threads=self.num_threads or 1)
        return np.where([vector is None for vector in vectors], -np.inf, scores)

    def load_basemodel(self, base_model: XGBoostCostModel) -> None:
        """Start from what another model of this task knows. Its weight halves with every 64 measurements."""
        self.base_model = base_model

    def spawn_base_model(self) -> XGBoostCostModel:
        """A model like this one that knows nothing yet, to learn from a log."""
        return XGBoostCostModel(self.task, self.feature_type, self.loss_type, self.num_threads, self.log_interval, self, seed=self.seed)

    def _is_ours(self, inp: MeasureInput) -> bool:
        name = getattr(self.task, "name", None)
        return name is None or inp.task.name == name

    def _discount(self) -> float:
        return float(2 ** (-self._told / HALF_LIFE))

    def _margin(self, xs: Sequence[int]) -> NDArray[np.float64]:
        if self.base_model is None:
            return np.zeros(len(xs))
        found = self.base_model.predict(xs)
        return np.where(np.isfinite(found), found, 0.0) * self._discount()

    def _train(self, vectors: Sequence[Vector | None], labels: NDArray[np.float64], groups: NDArray[np.int64], margin: NDArray[np.float64],
               boosting: Boosting) -> None:  # fmt: skip
        rows = matrix(vectors)
        self._width = rows.shape[1]
        self._trees = fit_trees(Samples(rows, labels, groups, margin), boosting, self._report)

    def _boosting(self, rounds: int, patience: int, top: int) -> Boosting:
        self._fits += 1
        return Boosting(loss=self.loss_type, rounds=rounds, patience=patience, top=top, seed=self.seed * 100_003 + self._fits, threads=self.num_threads or 1)

    def _report(self, trees: int, recall: float) -> None:
        if self.log_interval and trees % self.log_interval == 0:
            _logger.debug("%d trees: average recall %.4f", trees, recall)


def _task_of(inp: MeasureInput, task: object) -> object:
    """What instantiates the configuration of a record: ours, or the task that the record names."""
    return task if getattr(task, "args", None) == inp.task.args else inp.task
