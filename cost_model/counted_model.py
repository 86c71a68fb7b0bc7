"""For costs that are counted: the package's networks at first, and boosted trees once many programs of a run were measured.

The networks rank programs of which none was measured; from some hundred exact costs, trees learn more than the networks' corrections do. With 1344 programs
of the 21 kernels of MobileNet-V1 on a Cortex-M4, networks alone end at 0.335 and 0.333 of the plain loops' instructions (seeds 0 and 1), with trees from 256
programs on at 0.334 and 0.328, and from 128 on, with the search that `run.options.COUNTED` asks for, at 0.327 and 0.325.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from ansor.cost_model.kriging import Kriging
from ansor.cost_model.lightgbm_model import LightGBMModel
from ansor.cost_model.network import Network
from ansor.cost_model.network_model import NetworkModel
from ansor.errors import CostModelError
from ansor.ir.feature_rows import FeatureRows

ENOUGH = 128
"""Programs from which on trees judge."""


class CountedModel(NetworkModel):
    """networks, corrections: as in `NetworkModel`, which also says what is saved and gives `opinions`. seed: of the trees. If the lightgbm library does not
    load, the networks go on judging."""

    def __init__(self, networks: Sequence[Network], corrections: Sequence[Kriging] = (), seed: int = 0) -> None:
        super().__init__(networks, corrections)
        self._seed = seed
        self._trees: LightGBMModel | None = None

    def update(self, features: FeatureRows, seconds: NDArray[np.float64], tasks: NDArray[np.int64]) -> None:
        """See CostModel.update."""
        if self._trees is not None:
            self._trees.update(features, seconds, tasks)
            return
        super().update(features, seconds, tasks)
        if len(self._data) >= ENOUGH:
            with suppress(CostModelError):
                self._trees = LightGBMModel(self._seed, informed=True, known=self._data)

    def predict(self, features: FeatureRows) -> NDArray[np.float64]:
        """See CostModel.predict."""
        return super().predict(features) if self._trees is None else self._trees.predict(features)
