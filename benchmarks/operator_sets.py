"""The three sets of operators in figures, by family: those that the model was trained on, others that the project was tuned on, and those used for neither.

    python benchmarks/operator_sets.py                # each operator of the benchmarks with its set, and how much of it the model was trained on
    python benchmarks/operator_sets.py --networks     # families in the networks that are in neither of the first two sets; some minutes

`ansor.dataset.family` returns the family of a declaration, which does not depend on sizes. So an operator of the suite belongs to the first set even if the
model was trained on other sizes of it. Tables mark what the model was trained on with the signs of `MARKS`.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import metaschedule
import moved_operators
import pristine_operators
import twelve_operators

from ansor.dataset.family import reductions
from ansor.dataset.known import FAMILY, NOTHING, OPERATOR, PARTS, known_to_model
from ansor.dataset.operators import dataset_tasks
from ansor.dataset.split import HELD_OUT, fold_of
from ansor.te.tensor import Tensor

Declaration = Callable[[], Sequence[Tensor]]

MARKS = {OPERATOR: " *", FAMILY: " +", PARTS: " -", NOTHING: ""}
LEGEND = (
    "* the model in the package was trained on programs of this operator; + of its family, in other sizes; "
    "- of each of its reductions, in other families; no mark: on none of these"
)


@dataclass(frozen=True)
class OperatorSet:
    """Some families. why: how much a figure for one of them says."""

    name: str
    why: str
    operators: Callable[[], Iterable[tuple[str, Declaration]]]

    @property
    def families(self) -> frozenset[tuple[str, ...]]:
        """The families of all its operators."""
        return _families(self)


def _learned() -> Iterator[tuple[str, Declaration]]:
    return ((task.name, task.declare) for task in dataset_tasks() if fold_of(task) != HELD_OUT)


def _tuned_on() -> Iterator[tuple[str, Declaration]]:
    from disguises import OPERATORS as disguised
    from suite import ROWS  # torch

    yield from ((task.name, task.declare) for task in dataset_tasks() if fold_of(task) == HELD_OUT)
    yield from ((row.name, row.operator().declare) for row in ROWS)
    yield from twelve_operators.OPERATORS.items()
    yield from ((name, rival.tensors) for name, rival in metaschedule.RIVALS.items())
    yield from disguised.items()
    yield from moved_operators.OPERATORS.items()


def _pristine() -> Iterator[tuple[str, Declaration]]:
    yield from pristine_operators.OPERATORS.items()


SETS = (
    OperatorSet(
        "learned",
        "the model in the package was trained on measured programs of these families: four fifths of the tasks of `ansor.dataset.operators`, "
        "in other sizes than the fifth that was held out. Figures say how well the model ranks programs similar to those of its training.",
        _learned,
    ),
    OperatorSet(
        "tuned on",
        "not trained on, but used in development: `ESTIMATED`, `AGREED` and `SURE` of `ansor.run.zero_tuning`, the parameters of "
        "the search, features, rules and algorithms were chosen by figures for the held-out tasks, the suite, `twelve_operators`, `short_time`, "
        "`disguises` and the networks, and features by `moved_operators`. Most of these are in families of the first set; the others are this set.",
        _tuned_on,
    ),
    OperatorSet(
        "pristine",
        "never used in development. A family moves to the set above when anything is changed because of one of its figures.",
        _pristine,
    ),
)
"""Each family belongs to the first of these sets that has it."""

OF_NETWORKS: Mapping[str, str] = {
    "[1 0]": "resnet18",
    "max([0+r0 1+r1 2])": "resnet18",
    "sum([r0 0])": "resnet18",
    "sum(([r0 0] * [r0]))": "efficientnet_b0",
    "([0 1] * [1])": "efficientnet_b0",
    "sum([r0]); sum((([r0] - @0[]) * ([r0] - @0[])))": "convnext_t",
    "([0 1] + select(lt(axis[0], constant), [0 1], [0 1]))": "vit_b",
    "[1 0 2]": "vit_b",
    "([0 1] + [1])": "vit_b",
    "[0]": "vit_b",
    "(([0 1] + [0+? 1]) + [0 1])": "bert",
    "([0 1] + [0+? 1])": "distilbert",
    "[0+? 1]": "llama_small",
    "([0] * [0])": "llama_small",
    "(([0 1] * [0]) * [1])": "llama_small",
    "(([0 1 2] * [1 2]) + ([1 2] * select(lt(axis[2], constant), [0 1 2], [0 1 2])))": "llama_small",
    "sum(([0+r0 r1] * [r0 r1 1]))": "whisper_encoder",
    "sum(([0+r0 1+r1 2+r2 r3] * [r0 r1 r2 r3 3]))": "resnet3d_18",
}
"""Families of the networks' kernels that the first two sets would otherwise lack, each with a network that has it, as printed by `--networks`."""


@cache
def _families(one: OperatorSet) -> frozenset[tuple[str, ...]]:
    return frozenset(reductions(declare()) for _, declare in one.operators())


def set_of(tensors: Sequence[Tensor]) -> str:
    """The name of the first set that has the family of a declaration. Raises LookupError if none has it: add its operator to a set."""
    found = reductions(tensors)
    if "; ".join(found) in OF_NETWORKS:
        return "tuned on"
    for one in SETS:
        if found in one.families:
            return one.name
    raise LookupError(f"asked for the set of the family {'; '.join(found)}, which is in none; add its operator to a set of benchmarks/operator_sets.py")


def mark(tensors: Sequence[Tensor]) -> str:
    """The sign after an operator's name in tables: how much of it the model was trained on."""
    return MARKS[known_to_model(tensors)]


def _shown() -> Iterator[str]:
    for one in SETS:
        yield f"{one.name}: {one.why}"
        for name, declare in dict(one.operators()).items():
            if set_of(declare()) == one.name:
                yield f"    {name}{mark(declare())}    {'; '.join(reductions(declare()))}"


def _networks() -> Iterator[str]:
    from network_models import NETWORKS

    from ansor.graph.tasks import extract

    warnings.simplefilter("ignore")
    met: set[str] = set()
    for network in NETWORKS.values():
        for task in extract(network.model(), network.inputs(1)).tasks:
            found = reductions(task.tensors)
            if found not in SETS[0].families | SETS[1].families and "; ".join(found) not in met:
                met.add("; ".join(found))
                yield f"{network.name}: {'; '.join(found)}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--networks", action="store_true", help="print families of networks instead")
    given = options.parse_args()
    for line in _networks() if given.networks else _shown():
        print(line, flush=True)
    if not given.networks:
        print(LEGEND)
    return 0


if __name__ == "__main__":
    sys.exit(main())
