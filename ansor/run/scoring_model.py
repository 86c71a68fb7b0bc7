"""Which cost model ranks the programs of a run: the given one, that of this machine, the package's, or only the estimate."""

from __future__ import annotations

from dataclasses import dataclass

from ansor.cost_model.base import CostModel
from ansor.cost_model.pretrained import first_model, knows, package_version
from ansor.run.machine_model import FittedModel, machine_model
from ansor.targets.base import Target

GIVEN = "the given model"
"""What reports call a model that the caller gives."""

PACKAGES = "the package's model"

ESTIMATE = "estimate"
"""The mark of the estimate, used if no model knows the target."""


@dataclass(frozen=True)
class NamedModel:
    """name: the model's name in reports; mark: its name in records, which distinguishes versions."""

    model: CostModel
    name: str
    mark: str


def scoring_model(target: Target, unit: str, asked: CostModel | str | None = None, *, seed: int = 0, here: bool = True) -> NamedModel:
    """The model that ranks programs of a target with costs in a unit. here: programs are measured on this machine, so that a model fitted to it may be used.

    asked: a model, 'package', or None for the best available one.
    """
    if asked is not None and not isinstance(asked, str):
        return NamedModel(asked, GIVEN, f"given: {type(asked).__name__}")
    if not knows(target.prior.family, unit):
        return NamedModel(first_model(target.prior.family, unit, seed), "the estimate, corrected by measurements", ESTIMATE)
    own = machine_model(target) if asked is None and here else None
    if own is not None:
        return NamedModel(own.model, "the model of this machine", _machine_mark(own))
    return NamedModel(first_model(target.prior.family, unit, seed), PACKAGES, _package_mark(target.prior.family))


def model_mark(target: Target, unit: str, asked: str | None = None) -> str:
    """The mark of the model that `asked` names: 'package', or None for the best available one. Does not load the package's model."""
    if not knows(target.prior.family, unit):
        return ESTIMATE
    own = machine_model(target) if asked is None else None
    return _package_mark(target.prior.family) if own is None else _machine_mark(own)


def _machine_mark(own: FittedModel) -> str:
    return f"machine {own.digest}"


def _package_mark(family: str) -> str:
    return f"package {package_version(family)}"
