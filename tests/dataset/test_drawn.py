"""Declarations drawn at random: always the same for a seed, of all forms, and right."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import pytest

from ansor.dataset import drawn as module
from ansor.dataset.drawn import LEAST_OPERATIONS, MOST_ELEMENTS, MOST_OPERATIONS, Drawing, drawn
from ansor.dataset.family import reductions
from ansor.dataset.operators import DRAWN
from ansor.ir.dag import Dag
from ansor.te.tensor import Tensor

KEYS = {
    0: "857ab1218171ed52b125f2a162c81eed",
    1: "9bbb464de5e8f673af0221ee0a0724ca",
    7: "bbf6bb755a1cd1f2e31bc44bd82582a2",
    239: "33cdce4f699704c4a02f5201ded5c3b0",
}


def test_seeds_mean_the_declarations_of_the_records() -> None:
    """The workload of a record is the digest of its declaration."""
    assert {seed: Dag(drawn(seed)).key for seed in (0, 1, 7, 239)} == KEYS


def test_sizes_are_those_of_real_work() -> None:
    for seed in range(0, DRAWN, 12):
        dag = Dag(drawn(seed))
        assert LEAST_OPERATIONS / 4 <= dag.flop <= MOST_OPERATIONS
        assert all(math.prod(tensor.shape) <= MOST_ELEMENTS for tensor in (*dag.inputs, *dag.outputs))


def test_most_seeds_are_families_of_their_own() -> None:
    families = Counter(reductions(drawn(seed)) for seed in range(60))
    assert len(families) > 50


@pytest.mark.parametrize("form", [form for _, form in module.FORMS])
def test_each_form_can_be_declared(form: Callable[[Drawing], Tensor]) -> None:
    for seed in range(5):
        drawing = Drawing(seed)
        result = form(drawing)
        assert Dag([*drawing.inputs, result]).outputs
