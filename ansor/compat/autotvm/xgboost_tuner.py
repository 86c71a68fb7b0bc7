"""The tuner with boosted trees as its model. Source: AutoTVM 0.9, `XGBTuner`."""

from __future__ import annotations

from ansor.compat.autotvm.base_tuner import HasSpace
from ansor.compat.autotvm.model_based_tuner import ModelBasedTuner, ModelOptimizer
from ansor.compat.autotvm.sa_model_optimizer import SimulatedAnnealingOptimizer
from ansor.compat.autotvm.xgboost_cost_model import XGBoostCostModel
from ansor.errors import ConfigError
from ansor.templates.space import ConfigSpace


class XGBTuner(ModelBasedTuner):
    """A `ModelBasedTuner` with an `XGBoostCostModel` and a `SimulatedAnnealingOptimizer` (optimizer="sa") or a given optimiser.

    A bare space has no loops: it needs feature_type="knob". loss_type, num_threads, log_interval: see `XGBoostCostModel`. The same seed and results give
    the same configurations, in any process. Fitting raises CostModelError if LightGBM does not load. Raises ConfigError for unknown names.
    """

    def __init__(
        self, task: HasSpace | ConfigSpace, plan_size: int = 64, feature_type: str = "itervar", loss_type: str = "rank", num_threads: int | None = None,
        optimizer: str | ModelOptimizer = "sa", diversity_filter_ratio: float | None = None, log_interval: int = 50, *, seed: int = 0,
    ) -> None:  # fmt: skip
        model = XGBoostCostModel(task, feature_type, loss_type, num_threads, log_interval // 2, seed=seed)
        if isinstance(optimizer, str):
            if optimizer != "sa":
                raise ConfigError(f"asked for optimizer={optimizer!r}; give 'sa', or an object with find_maximums")
            optimizer = SimulatedAnnealingOptimizer(task, log_interval=log_interval, seed=seed)
        super().__init__(task, model, optimizer, plan_size, diversity_filter_ratio, seed=seed)
