"""The model that training continues from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ansor.cost_model.base import read_document
from ansor.cost_model.feature_table import WIDTH
from ansor.cost_model.network import Network
from ansor.cost_model.network_model import NetworkModel
from ansor.cost_model.saved import load_model
from ansor.dataset.train import MEMBERS
from ansor.errors import AnsorError
from ansor.support import safe_files

JOINED_BY = " and "
"""Between the parts of `held_out`."""


@dataclass(frozen=True)
class StartingModel:
    """networks: those to train further; about: what their file says of how they were made, and a digest of the file; corrections: how many the model has from
    measurements of single tasks, which are not trained further."""

    networks: Sequence[Network]
    about: Mapping[str, object]
    corrections: int

    @property
    def targets(self) -> list[str]:
        """The targets whose programs they learned from."""
        return [one for one in str(self.about.get("target", "")).split(", ") if one]


def starting_model(path: Path, held_out: Sequence[str]) -> StartingModel:
    """The model in a file. held_out: the tasks that are held out now. Raises AnsorError for another kind of model, and for one that learned these tasks."""
    model, document = load_model(path), read_document(path)
    instead = "leave out --begin to start from random weights"
    if not isinstance(model, NetworkModel) or [one.width for one in model.networks] != [WIDTH] * MEMBERS:
        found = f"{len(model.networks)} networks" if isinstance(model, NetworkModel) else f"a model of the kind {document['kind']}"
        raise AnsorError(f"asked to train {path} further, which is not a model of {MEMBERS} networks that score the package's features, but {found}; {instead}")
    given, corrections = document.get("about"), document.get("corrections")
    about = {str(name): value for name, value in given.items()} if isinstance(given, dict) else {}
    known = str(about.get("held_out", "")).split(JOINED_BY)
    if learned := [one for one in held_out if one not in known]:
        raise AnsorError(f"asked to hold out {JOINED_BY.join(learned)}, and to train {path} further, which does not say that it held this out when it was "
                         "trained; begin with a model that did, or train on all with --all")  # fmt: skip
    digest = safe_files.digest(path.read_bytes())[:8]
    return StartingModel(model.networks, {"digest": digest, **about}, len(corrections) if isinstance(corrections, list) else 0)
