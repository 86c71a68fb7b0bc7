"""The package's models, trained on programs of many operators, so that they rank those of others before any measurement.

There is one for each family of targets and unit of costs: for processors, and for boards that count instructions. `ansor dataset train` makes such files;
`about` in each describes the training data and the held-out tasks. For other targets there is only the estimate, which measurements correct.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from ansor.cost_model.base import CostModel, read_document
from ansor.cost_model.counted_model import CountedModel
from ansor.cost_model.lightgbm_model import LightGBMModel
from ansor.cost_model.network_model import NetworkModel
from ansor.targets.prior import BOARDS, PROCESSORS

FILES = {PROCESSORS: "pretrained.json.gz", BOARDS: "pretrained_boards.json.gz"}
"""The model of each family of targets (`Prior.family`)."""

UNITS = {PROCESSORS: "seconds", BOARDS: "instructions"}
"""The unit of the costs that each was trained on."""


def weights_of(family: str) -> Path:
    """The file of a family's model."""
    return Path(__file__).with_name(FILES[family])


def pretrained(family: str = PROCESSORS) -> NetworkModel:
    """The package's model for a family of targets; measurements correct it."""
    return _loaded(family).another()


def knows(family: str, unit: str) -> bool:
    """Whether a model of the package was trained for this family of targets (`Prior.family`) and for costs in this unit."""
    return UNITS.get(family) == unit


def first_model(family: str, unit: str, seed: int = 0) -> CostModel:
    """The model that a search begins with: the package's if one knows the target, else one that starts from the estimate."""
    if not knows(family, unit):
        return LightGBMModel(seed, informed=True)
    return pretrained(family) if family == PROCESSORS else CountedModel(pretrained(family).networks, seed=seed)


@lru_cache
def package_version(family: str = PROCESSORS) -> str:
    """The version of a family's model: a digest of its file."""
    return hashlib.sha256(weights_of(family).read_bytes()).hexdigest()[:8]


def learned_targets(family: str = PROCESSORS) -> tuple[str, ...]:
    """The targets whose programs a family's model learned from, as its file states."""
    about = read_document(weights_of(family))["about"]
    return tuple(str(about["target"]).split(", ")) if isinstance(about, dict) else ()


@lru_cache
def _loaded(family: str) -> NetworkModel:
    return NetworkModel.load(weights_of(family))
