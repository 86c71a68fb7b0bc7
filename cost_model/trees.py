"""Boosted trees for the log time of statement rows, if only the times of whole programs are known.

A program's time is the sum of exp(base + tree output) over its rows. With `share` a row's part of it, d(log of the sum) / d(row) = share, and an
equal step in all rows of a program moves its log by that step: hessian = share makes the Newton step exact.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.training_set import LIMIT, TINY, means
from ansor.errors import CostModelError
from ansor.ir.feature_rows import FeatureRows

if TYPE_CHECKING:
    import lightgbm

SMALLEST_HESSIAN = 0.02
"""LightGBM estimates the rows on each side of a split from hessians; near-zero ones made it split off nothing and abort."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeOptions:
    """Sizes of an ensemble. `smallest_leaf`: rows; `l2`: shrinks leaves towards zero; `features`, `rows`: share of both that each tree sees."""

    trees: int
    learning_rate: float
    leaves: int
    smallest_leaf: int
    l2: float = 0.1
    features: float = 0.7
    rows: float = 1.0
    seed: int = 0


def import_lightgbm(asked: str = "the LightGBM cost model", otherwise: str = "use the torch model") -> ModuleType:
    """The library. Raises CostModelError if it does not load (libgomp.so.1 is missing on some bare machines); `asked`, `otherwise`: words of the message."""
    try:
        return importlib.import_module("lightgbm")
    except (ImportError, OSError) as error:
        raise CostModelError(f"asked for {asked}; the LightGBM library does not load ({error}): install lightgbm and libgomp1, or {otherwise}") from error


def fit_trees(features: FeatureRows, slowness: NDArray[np.float64], weights: NDArray[np.float64], base: NDArray[np.float64], options: TreeOptions, *,
              tasks: NDArray[np.int64] | None = None) -> lightgbm.Booster:
    """Weighted least squares on log slowness `[n]`, on top of the row logs `base` `[r]`.

    `tasks` `[n]`: the task of each program, counted from 0; the slowness of each task is then known up to a fitted factor, so that only
    differences within a task are learned. Runs on one thread, with the same result on every machine.
    """
    library = import_lightgbm()
    row_weight = weights[features.segment]

    def gradient(logs: NDArray[np.float64], _: object) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        times = np.exp(np.clip(base + logs, -LIMIT, LIMIT))
        total = features.sums(times)
        share = times / total[features.segment] * row_weight
        error = np.log(np.maximum(total, TINY)) - slowness
        if tasks is not None:
            error = error - means(error, weights, tasks)[tasks]
        return share * error[features.segment], np.maximum(share, SMALLEST_HESSIAN)

    parameters = {
        "objective": gradient, "num_leaves": options.leaves, "learning_rate": options.learning_rate, "min_data_in_leaf": options.smallest_leaf,
        "min_sum_hessian_in_leaf": SMALLEST_HESSIAN, "lambda_l2": options.l2, "feature_fraction": options.features,
        "bagging_fraction": options.rows, "bagging_freq": int(options.rows < 1), "max_bin": 63, "min_data_in_bin": 1, "feature_pre_filter": False,
        "num_threads": 1, "deterministic": True, "force_col_wise": True, "seed": options.seed, "verbosity": -1,
    }  # fmt: skip
    data = library.Dataset(features.rows, label=np.zeros(len(features.rows)), params=parameters)
    booster: lightgbm.Booster = library.train(parameters, data, num_boost_round=options.trees)
    return booster
