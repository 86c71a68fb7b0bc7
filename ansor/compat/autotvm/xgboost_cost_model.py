"""AutoTVM's cost model of configurations: the trees of `ansor.cost_model` over AutoTVM's features. Source: AutoTVM 0.9, `XGBoostCostModel`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ansor.compat.autotvm.base_tuner import HasSpace
from ansor.compat.autotvm.config_features import ConfigFeatures, Vector, feature_rows
from ansor.compat.autotvm.measured import MeasureInput, MeasureResult
from ansor.cost_model.lightgbm_model import LightGBMModel
from ansor.cost_model.trees import import_lightgbm
from ansor.errors import ConfigError
from ansor.templates.space import ConfigSpace

_logger = logging.getLogger("autotvm")

LOSSES = ("rank", "reg")

ENOUGH = 256
"""The number of measurements of the task after which a log is ignored, since its times may differ."""

Programs = list[tuple[Vector, float, str]]
"""Features, seconds, and the task's identity: times are only compared within a task."""


class XGBoostCostModel:
    """Scores configurations of a task: approximately the best time divided by theirs.

    feature_type: itervar, knob, curve (`ConfigFeatures`); upper_model: a model to share features with. The same seed and data give the same scores.
    loss_type: "rank" or "reg"; both mean the same loss, on the logarithm of times relative to a task's best. num_threads, log_interval: ignored here.

    Raises ConfigError for another loss or feature type.
    """

    def __init__(
        self, task: HasSpace | ConfigSpace, feature_type: str = "itervar", loss_type: str = "rank", num_threads: int | None = None, log_interval: int = 25,
        upper_model: XGBoostCostModel | None = None, *, seed: int = 0,
    ) -> None:  # fmt: skip
        if loss_type not in LOSSES:
            raise ConfigError(f"asked for a cost model with loss_type={loss_type!r}; types are {', '.join(LOSSES)}")
        self.task = task
        self.feature_type, self.loss_type, self.seed = feature_type, loss_type, seed
        self.base_model: XGBoostCostModel | None = None
        self._features: ConfigFeatures = ConfigFeatures(task, feature_type) if upper_model is None else upper_model._features
        self._log: Programs = []
        self._model: LightGBMModel | None = None
        self._width = 0

    def fit(self, xs: Sequence[int], ys: Sequence[float], plan_size: int) -> None:
        """Learn how fast each of the indices `xs` is (`ys`: any measure of speed, 0 for a failure), replacing what was learned from earlier `xs`.

        Configurations that cannot be instantiated are ignored. Raises CostModelError if LightGBM does not load.
        """
        if len(xs) >= ENOUGH:
            self.base_model, self._log = None, []
        seconds = [1 / speed if speed > 0 else np.inf for speed in ys]
        self._train([(vector, cost, "") for vector, cost in zip(self._features.of_indices(xs), seconds, strict=True) if vector is not None])

    def fit_log(self, records: Iterable[tuple[MeasureInput, MeasureResult]], plan_size: int, min_seed_records: int = 500) -> bool:
        """Learn from records of the task's template with any arguments. Returns whether at least `min_seed_records` had features.

        Programs are only compared with those of the same target and arguments. Raises CostModelError if LightGBM does not load.
        """
        name = getattr(self.task, "name", None)
        ours = [(inp, result) for inp, result in records if name is None or inp.task.name == name]
        vectors = [self._features.of_config(inp.config, _task_of(inp, self.task)) for inp, _ in ours]
        found = [(vector, pair) for vector, pair in zip(vectors, ours, strict=True) if vector is not None]
        if len(found) < max(min_seed_records, 1):
            _logger.warning("a log with %d usable records is ignored, since min_seed_records is %d; lower it, or add records", len(found), min_seed_records)
            return False
        self._log = [(vector, result.mean_cost, f"{inp.target} {inp.task!r}") for vector, (inp, result) in found]
        self._train([])
        return True

    def predict(self, xs: Sequence[int], output_margin: bool = False) -> NDArray[np.float64]:
        """A score per index; -infinity for a configuration that cannot be instantiated. Zeros before anything is learned.

        output_margin: ignored here.
        """
        vectors = self._features.of_indices(xs)
        scores = np.zeros(len(xs)) if self._model is None else self._model.predict(feature_rows(vectors, self._width))
        return np.where([vector is None for vector in vectors], -np.inf, scores)

    def load_basemodel(self, base_model: XGBoostCostModel) -> None:
        """Start from the log that another model of this task has learned from, until enough is measured."""
        self.base_model, self._log = base_model, base_model._log
        self._model, self._width = base_model._model, base_model._width

    def spawn_base_model(self) -> XGBoostCostModel:
        """An untrained model with the same options, to learn from a log."""
        return XGBoostCostModel(self.task, self.feature_type, self.loss_type, upper_model=self, seed=self.seed)

    def _train(self, measured: Programs) -> None:
        import_lightgbm("XGBTuner", otherwise="use GATuner")
        programs = [*self._log, *measured]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(name for _, _, name in programs))}
        self._width = max((len(vector) for vector, _, _ in programs), default=0)
        self._model = LightGBMModel(self.seed)
        rows = feature_rows([vector for vector, _, _ in programs], self._width)
        self._model.update(rows, np.array([seconds for _, seconds, _ in programs]), np.array([numbers[name] for _, _, name in programs], np.int64))


def _task_of(inp: MeasureInput, task: object) -> object:
    """The task that instantiates the configuration of a record: ours if the arguments match, else the record's."""
    return task if getattr(task, "args", None) == inp.task.args else inp.task
