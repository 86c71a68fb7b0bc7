"""Boosted trees over statement rows, on top of a smooth model: the default cost model.

A smooth model plus a tree ensemble gives each statement row a log time f, relative to the best program of the task; the program's slowness is the sum
of exp(f) over its rows and its score 1 / slowness. Trained on log slowness, weighted towards the fast.

Why not the sum of row scores with the label best / seconds ("pack-sum", the predecessor): times add up over statements,
their reciprocals do not, so a program with more statements scored higher for no reason. On programs of 1-3 statements with additive times
pack-sum ranked unseen ones worse than chance, this form ranks 90 % of the pairs right. Why not one fixed-size vector per program: it
doubles the width, and so the training time, while prediction is the same C++ either way.
"""

import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.base import check_width, read_document, write_document
from ansor.cost_model.smooth import SmoothModel, fit_smooth, smooth_from_document
from ansor.cost_model.training_set import LIMIT, TINY, TrainingSet, scores
from ansor.errors import CostModelError
from ansor.ir.feature_rows import FeatureRows

if TYPE_CHECKING:
    import lightgbm

TREES = 64
LEAVES = 31

SMALLEST_HESSIAN = 0.02
"""LightGBM estimates how many rows a side of a split has from hessians; near-zero ones made it split off nothing and abort."""


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """What one training made; the row logs of several add up."""

    smooth: SmoothModel
    trees: "lightgbm.Booster"


class LightGBMModel:
    """Smooth model and LightGBM on all programs told so far, trained anew at an update that brings enough of them.

    `growth`: retrain when the programs grew by this share since the last training (0 = at each update); at 0.03 a round of 16
    always retrains below 500 programs, and later a large network does not pay a second of training per round.
    `informed`: the feature rows carry a prior, so scores mean something before anything is learned.
    Raises CostModelError when the lightgbm library does not load (libgomp.so.1 is missing on some bare machines).
    """

    def __init__(self, seed: int = 0, trees: int = TREES, learning_rate: float = 0.15, growth: float = 0.03, *, informed: bool = False) -> None:
        self._informed = informed
        self._library = _import_lightgbm()
        self._seed = seed
        self._trees = trees
        self._learning_rate = learning_rate
        self._growth = growth
        self._data = TrainingSet()
        self._trained_on = 0
        self._width: int | None = None
        self._base: list[_Stage] = []  # loaded; what is learned later corrects it
        self._learned: list[_Stage] = []

    @property
    def fitted(self) -> bool:
        """After the first update with a valid program, or when loaded."""
        return bool(self._informed or self._base or self._learned)

    def update(self, features: FeatureRows, seconds: NDArray[np.float64], tasks: NDArray[np.int64]) -> None:
        """See CostModel.update."""
        check_width(features, self._width)
        self._data.add(features, seconds, tasks)
        self._width = features.width
        enough = len(self._data) > self._trained_on * (1 + self._growth)
        if not self._data.any_valid or not enough:
            return
        if not _anything_varies(self._data.features()):
            return
        self._learned = [self._train()]
        self._trained_on = len(self._data)

    def predict(self, features: FeatureRows) -> NDArray[np.float64]:
        """See CostModel.predict; zeros before anything is learned."""
        check_width(features, self._width)
        return scores(features.prior_logs() + _row_logs([*self._base, *self._learned], features), features)

    def save(self, path: Path) -> None:
        """LightGBM's own text of the trees, in a JSON document."""
        stages = [{"smooth": stage.smooth.document(), "trees": stage.trees.model_to_string()}
                  for stage in [*self._base, *self._learned]]
        write_document(path, "lightgbm", {"width": self._width, "stages": stages})

    @classmethod
    def load(cls, path: Path, seed: int = 0) -> "LightGBMModel":
        """A saved model; updates then train a correction on top of it."""
        document = read_document(path, "lightgbm")
        stages, width = document.get("stages"), document.get("width")
        model = cls(seed=seed)
        try:
            if not isinstance(stages, list) or not (width is None or isinstance(width, int)):
                raise ValueError("no list of stages")
            model._width = width
            model._base = [_Stage(smooth_from_document(stage["smooth"]), model._library.Booster(model_str=stage["trees"]))
                           for stage in stages]
        except (KeyError, TypeError, ValueError, model._library.basic.LightGBMError) as error:
            raise CostModelError(f"asked to load {path}; found a damaged model ({error}): save it again") from error
        return model

    def _train(self) -> _Stage:
        features, slowness, weights = self._data.features(), self._data.slowness(), self._data.weights()
        base = self._data.prior() + _row_logs(self._base, features)
        smooth = fit_smooth(features, slowness, weights, base)
        base = base + smooth.row_logs(features.rows)
        row_weight = weights[features.segment]

        def gradient(logs: NDArray[np.float64], _: object) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            # With share = a row's part of the program's time, d(log of sum)/d(row) = share, and a step of the same size
            # in all rows of a program moves its log by that size: hessian = share makes the Newton step exact.
            times = np.exp(np.clip(base + logs, -LIMIT, LIMIT))
            total = features.sums(times)
            share = times / total[features.segment] * row_weight
            error = np.log(np.maximum(total, TINY)) - slowness
            return share * error[features.segment], np.maximum(share, SMALLEST_HESSIAN)

        parameters = {
            "objective": gradient, "num_leaves": int(np.clip(len(slowness) // 8, 4, LEAVES)), "learning_rate": self._learning_rate,
            "min_data_in_leaf": _smallest_leaf(len(slowness)), "min_sum_hessian_in_leaf": SMALLEST_HESSIAN, "lambda_l2": 0.1,
            "feature_fraction": 0.7, "max_bin": 63, "min_data_in_bin": 1, "feature_pre_filter": False,
            "num_threads": 1, "deterministic": True, "force_col_wise": True, "seed": self._seed, "verbosity": -1,
        }
        data = self._library.Dataset(features.rows, label=np.zeros(len(features.rows)), params=parameters)
        return _Stage(smooth, self._library.train(parameters, data, num_boost_round=self._trees))


def _anything_varies(features: FeatureRows) -> bool:
    """Whether there is something to split on; LightGBM aborts otherwise. It takes values below 1e-35 for zero."""
    rows = np.where(np.abs(features.rows) < 1e-30, 0, features.rows)
    return len(rows) > 1 and bool((rows != rows[0]).any())


def _smallest_leaf(programs: int) -> int:
    """Rows a leaf needs: few while there are few programs, so that the first round of 16 already teaches something."""
    return int(np.clip(programs // 32, 2, 12))


def _row_logs(stages: list[_Stage], features: FeatureRows) -> NDArray[np.float64]:
    logs = np.zeros(len(features.rows))
    if not len(features.rows):
        return logs
    rows = np.ascontiguousarray(features.rows, dtype=np.float32)
    for stage in stages:
        logs += stage.smooth.row_logs(rows)
        logs += stage.trees.predict(rows, raw_score=True, num_threads=1)
    return logs


def _import_lightgbm() -> ModuleType:
    try:
        return importlib.import_module("lightgbm")
    except (ImportError, OSError) as error:
        raise CostModelError(
            f"asked for the LightGBM cost model; its library does not load ({error}): install lightgbm and libgomp1, "
            "or use the torch model"
        ) from error
