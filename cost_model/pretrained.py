"""The package's model, trained on programs of many operators, so that it ranks those of others before any measurement.

`ansor dataset train` makes such files; `about` in this one describes the training data and the held-out tasks. It is valid for processors like those it was
trained on, and for seconds. For others there is only the estimate, which measurements correct.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from ansor.cost_model.base import CostModel, read_document
from ansor.cost_model.lightgbm_model import LightGBMModel
from ansor.cost_model.network_model import NetworkModel
from ansor.targets.prior import PROCESSORS

WEIGHTS = Path(__file__).with_name("pretrained.json.gz")
KNOWN = (PROCESSORS, "seconds")
"""The family of targets and the unit it was trained for."""


def pretrained() -> NetworkModel:
    """The package's model; measurements correct it."""
    return _loaded().another()


def knows(family: str, unit: str) -> bool:
    """Whether the package's model was trained for this family of targets (`Prior.family`) and for costs in this unit."""
    return (family, unit) == KNOWN


def first_model(family: str, unit: str, seed: int = 0) -> CostModel:
    """The model that a search begins with: the package's if it knows the target, else one that starts from the estimate."""
    return pretrained() if knows(family, unit) else LightGBMModel(seed, informed=True)


@lru_cache(maxsize=1)
def package_version() -> str:
    """The model's version: a digest of its file."""
    return hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()[:8]


def learned_targets() -> tuple[str, ...]:
    """The targets whose programs the package's model learned from, as its file states."""
    about = read_document(WEIGHTS)["about"]
    return tuple(str(about["target"]).split(", ")) if isinstance(about, dict) else ()


@lru_cache(maxsize=1)
def _loaded() -> NetworkModel:
    return NetworkModel.load(WEIGHTS)
