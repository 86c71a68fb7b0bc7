"""Loads saved models of any kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ansor.cost_model.base import CostModel, read_document
from ansor.cost_model.lightgbm_model import LightGBMModel
from ansor.cost_model.network_model import NetworkModel
from ansor.cost_model.random_model import RandomModel
from ansor.cost_model.torch_model import TorchModel
from ansor.errors import CostModelError

LOADERS: dict[str, Callable[[Path], CostModel]] = {
    "random": RandomModel.load, "lightgbm": LightGBMModel.load, "torch": TorchModel.load, "networks": NetworkModel.load
}  # fmt: skip


def load_model(path: Path) -> CostModel:
    """The model saved in `path`, of the kind its header names. Raises CostModelError if the file is not one."""
    kind = read_document(path).get("kind")
    if not isinstance(kind, str) or kind not in LOADERS:
        raise CostModelError(f"asked to load the cost model {path}; found kind {kind!r}: use one of {sorted(LOADERS)}")
    return LOADERS[kind](path)
