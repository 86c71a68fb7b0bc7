"""The model that comes with the package: trained on the programs of many operators, so that it ranks those of others before any is measured.

`ansor dataset train` makes such files; `about` in this one says of what, and which tasks were held out.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ansor.cost_model.network_model import NetworkModel

WEIGHTS = Path(__file__).with_name("pretrained.json.gz")


def pretrained() -> NetworkModel:
    """The package's model; what is measured corrects it."""
    return _loaded().another()


@lru_cache(maxsize=1)
def _loaded() -> NetworkModel:
    return NetworkModel.load(WEIGHTS)
