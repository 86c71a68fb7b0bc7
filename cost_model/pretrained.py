"""The model that comes with the package: trained on the programs of many operators, so that it ranks those of others before any is measured.

`ansor dataset train` makes such files; `about` in this one says of what, and which tasks were held out.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ansor.cost_model.lightgbm_model import LightGBMModel

WEIGHTS = Path(__file__).with_name("pretrained.json.gz")


def pretrained(seed: int = 0) -> LightGBMModel:
    """The package's model; updates train a correction on top of it, for which LightGBM has to be there."""
    return LightGBMModel(seed, base=_loaded())


@lru_cache(maxsize=1)
def _loaded() -> LightGBMModel:
    return LightGBMModel.load(WEIGHTS)
