"""The origin of a program, the rules or a template, and the origin of the fastest one of a task."""

from collections.abc import Mapping

from ansor.targets.unit import SECONDS, Unit
from ansor.templates.label import TEMPLATE

RULES = "the rules"


def origin_of(algorithm: str) -> str:
    """The origin of programs recorded under this algorithm."""
    return algorithm if algorithm.startswith(TEMPLATE) else RULES


def standing(costs: Mapping[str, float | None], unit: Unit = SECONDS) -> str:
    """`best: template 'matmul' 1.1 ms; best of the rules 1.2 ms`: the fastest program of each, None where none was valid."""
    ranked = sorted((found, name) for name, found in costs.items() if found is not None)
    told = [f"{name} {unit.text(found)}" for found, name in ranked]
    missing = [f"no valid program of {name}" for name, found in costs.items() if found is None]
    return "; ".join([*(f"best: {one}" if place == 0 else f"best of {one}" for place, one in enumerate(told)), *missing])
