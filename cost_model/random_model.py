"""A model that knows nothing: the baseline that every other model must beat, used by a search without a model."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.base import read_document, write_document
from ansor.cost_model.training_set import TrainingSet
from ansor.ir.feature_rows import FeatureRows


class RandomModel:
    """Scores are random numbers in [0, 1); a seed gives the same sequence in any process."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._generator = np.random.default_rng(seed)

    @property
    def fitted(self) -> bool:
        """Never: its scores mean nothing."""
        return False

    def update(self, features: FeatureRows, seconds: NDArray[np.float64], tasks: NDArray[np.int64]) -> None:
        """Checks its arguments and learns nothing."""
        TrainingSet().add(features, seconds, tasks)

    def predict(self, features: FeatureRows) -> NDArray[np.float64]:
        """`[n]` random scores."""
        return self._generator.random(features.count)

    def save(self, path: Path) -> None:
        """Write the seed."""
        write_document(path, "random", {"seed": self._seed})

    @classmethod
    def load(cls, path: Path) -> "RandomModel":
        """Load a model with the saved seed, from the start of its sequence."""
        return cls(seed=int(str(read_document(path, "random")["seed"])))
