"""Boosted trees over statement rows, on top of a smooth model: the model used where none was trained beforehand.

A smooth model plus a tree ensemble gives each statement row a log time f, relative to the best program of the task; the program's slowness is the sum
of exp(f) over its rows and its score 1 / slowness. Trained on log slowness, weighted towards the fast.

Why not the sum of row scores with the label best / seconds ("pack-sum", the predecessor): times add up over statements,
their reciprocals do not, so a program with more statements scored higher for no reason. On programs of 1-3 statements with additive times
pack-sum ranked unseen ones worse than chance, this form ranks 90 % of the pairs right. Why not one fixed-size vector per program: it
doubles the width, and so the training time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ansor.codegen.tree_library import Sums
from ansor.cost_model.base import check_features_version, check_width, features_version, read_document, write_document
from ansor.cost_model.lightgbm_trees import sums_of
from ansor.cost_model.smooth import SmoothModel, fit_smooth, smooth_from_document
from ansor.cost_model.training_set import TrainingSet, scores
from ansor.cost_model.trees import TreeOptions, fit_trees, import_lightgbm
from ansor.errors import CostModelError
from ansor.ir.feature_rows import FeatureRows

if TYPE_CHECKING:
    import lightgbm

TREES = 64
LEAVES = 31


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """The result of one training: a smooth model, or None, and ensembles of trees whose outputs are averaged. The row logs of several stages add up."""

    smooth: SmoothModel | None
    trees: "tuple[lightgbm.Booster, ...]"
    sums: tuple[Sums, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sums", tuple(map(sums_of, self.trees)))

    def row_logs(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Log time of each row, `[r]`."""
        logs = np.zeros(len(rows)) if self.smooth is None else self.smooth.row_logs(rows)
        for sums in self.sums:
            logs += sums(rows) / len(self.sums)
        return logs


class LightGBMModel:
    """Smooth model and LightGBM on all programs so far, retrained at an update that brings enough new ones.

    `growth`: retrain once the programs grew by this share since the last training (0 = at each update); at 0.03 a round of 16
    always retrains below 500 programs, and a large network later avoids a second of training per round.
    `informed`: the feature rows carry a prior, so scores mean something before anything is learned.
    `known`: measured programs to learn from at once; later ones are added to them.
    Raises CostModelError if the lightgbm library does not load (libgomp.so.1 is missing on some bare machines).
    """

    def __init__(self, seed: int = 0, trees: int = TREES, learning_rate: float = 0.15, growth: float = 0.03, *,
                 informed: bool = False, known: TrainingSet | None = None) -> None:
        self._informed = informed
        self._library = import_lightgbm()
        self._seed = seed
        self._trees = trees
        self._learning_rate = learning_rate
        self._growth = growth
        self._data = TrainingSet() if known is None else known
        self._trained_on = 0
        self._width = self._data.width
        self._base: list[Stage] = []  # of a saved model; later training corrects it
        self._learned: list[Stage] = []
        self._learn()

    @property
    def fitted(self) -> bool:
        """After the first update with a valid program, or when loaded."""
        return bool(self._informed or self._base or self._learned)

    def update(self, features: FeatureRows, seconds: NDArray[np.float64], tasks: NDArray[np.int64]) -> None:
        """See CostModel.update."""
        check_width(features, self._width)
        self._data.add(features, seconds, tasks)
        self._width = features.width
        self._learn()

    def _learn(self) -> None:
        """Train, if there are enough new programs, and something to learn from them."""
        enough = len(self._data) > self._trained_on * (1 + self._growth)
        if not self._data.any_valid or not enough or not _anything_varies(self._data.features()):
            return
        self._learned = [self._train()]
        self._trained_on = len(self._data)

    def predict(self, features: FeatureRows) -> NDArray[np.float64]:
        """See CostModel.predict; zeros before anything is learned."""
        check_width(features, self._width)
        return scores(features.prior_logs() + _row_logs([*self._base, *self._learned], features), features)

    def save(self, path: Path) -> None:
        """LightGBM's own text of the trees, in a JSON document."""
        stages = [{"smooth": None if stage.smooth is None else stage.smooth.document(), "trees": [trees.model_to_string() for trees in stage.trees]}
                  for stage in (*self._base, *self._learned)]
        write_document(path, "lightgbm", {"width": self._width, "features": features_version(self._width), "stages": stages})

    @classmethod
    def load(cls, path: Path, seed: int = 0) -> "LightGBMModel":
        """A saved model; updates then train a correction on top of it."""
        document = read_document(path, "lightgbm")
        check_features_version(path, document)
        stages, width = document.get("stages"), document.get("width")
        model = cls(seed=seed)
        try:
            if not isinstance(stages, list) or not (width is None or isinstance(width, int)):
                raise ValueError("no list of stages")
            model._width = width
            model._base = [_stage_from(document, model._library) for document in stages]
        except (KeyError, TypeError, ValueError, model._library.basic.LightGBMError) as error:
            raise CostModelError(f"asked to load {path}; found a damaged model ({error}): save it again") from error
        return model

    def _train(self) -> Stage:
        features, slowness, weights = self._data.features(), self._data.slowness(), self._data.weights()
        base = self._data.shifted(features.prior_logs() + _row_logs(self._base, features))
        smooth = fit_smooth(features, slowness, weights, base)
        base = base + smooth.row_logs(features.rows)
        options = TreeOptions(
            trees=self._trees, learning_rate=self._learning_rate, leaves=int(np.clip(len(slowness) // 8, 4, LEAVES)),
            smallest_leaf=_smallest_leaf(len(slowness)), seed=self._seed,
        )  # fmt: skip
        return Stage(smooth, (fit_trees(features, slowness, weights, base, options),))


def stage_model(stage: Stage) -> LightGBMModel:
    """A model that starts from a stage and learns on from there."""
    model = LightGBMModel()
    model._base = [stage]
    return model


def _stage_from(document: Mapping[str, Any], library: ModuleType) -> Stage:
    smooth = document["smooth"]
    return Stage(None if smooth is None else smooth_from_document(smooth), tuple(library.Booster(model_str=text) for text in document["trees"]))


def _anything_varies(features: FeatureRows) -> bool:
    """Whether there is something to split on; LightGBM aborts otherwise. It treats values below 1e-35 as zero."""
    rows = np.where(np.abs(features.rows) < 1e-30, 0, features.rows)
    return len(rows) > 1 and bool((rows != rows[0]).any())


def _smallest_leaf(programs: int) -> int:
    """Minimum rows per leaf: few while there are few programs, so that the model already learns from the first round of 16."""
    return int(np.clip(programs // 32, 2, 12))


def _row_logs(stages: Sequence[Stage], features: FeatureRows) -> NDArray[np.float64]:
    logs = np.zeros(len(features.rows))
    if not len(features.rows):
        return logs
    rows = np.ascontiguousarray(features.rows, dtype=np.float32)
    for stage in stages:
        logs += stage.row_logs(rows)
    return logs
