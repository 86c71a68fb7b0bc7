"""Nests that sketches have in common, lowered once."""

from __future__ import annotations

import numpy as np
import pytest

from ansor import te
from ansor.ir import access
from ansor.ir.dag import Dag
from ansor.ir.tape import Recorder
from ansor.schedule.known_nests import KnownNests
from ansor.schedule.lower import lower, lower_with
from ansor.schedule.sketch import Sketch
from ansor.schedule.steps import CacheWrite, ComputeAt, ComputeInline, PackInside, Reorder, Split, Vectorize
from ansor.search.derive import spaces
from ansor.targets.base import parse_target
from ansor.te.tensor import Tensor
from tests import declarations
from tests.declarations import Draw, seeded_draw


def three_stages() -> Sketch:
    x, w = te.placeholder((12, 8), name="x"), te.placeholder((8, 12), name="w")
    a = te.compute((12, 8), lambda i, j: x[i, j] * 2.0, name="a")
    k = te.reduce_axis((0, 8), name="k")
    b = te.compute((12, 12), lambda i, j: te.sum(a[i, k] * w[k, j], axis=k), name="b")
    return Sketch(Dag([x, w, te.compute((12, 12), lambda i, j: b[i, j] + 1.0, name="c")]))


@pytest.mark.parametrize("kind", sorted(declarations.KINDS))
def test_programs_are_the_same_whatever_was_lowered_before(kind: str) -> None:
    for seed in range(3):
        draw: Draw = seeded_draw(seed)
        nests = KnownNests()
        for sketch in spaces(declarations.random_case(draw, kind).dag, parse_target("cpu -mcpu=znver3 -threads=1"))[:12]:
            for gene in (0, -1):
                numbers = sketch.row_numbers([gene % size for size in sketch.sizes.tolist()])
                assert str(lower_with(nests, sketch.state, numbers)) == str(lower(sketch.state, numbers))


def test_a_nest_that_did_not_change_is_the_same_object() -> None:
    nests, sketch = KnownNests(), three_stages()
    before = lower_with(nests, sketch.state, {})
    after = lower_with(nests, sketch.then(Split("b", "j", (4,), 2)).state, {})
    assert [one is other for one, other in zip(before.body, after.body, strict=True)] == [True, False, True]
    assert before.arguments == after.arguments and before.intermediates == after.intermediates


def test_what_is_inlined_computed_inside_or_stored_otherwise_makes_another_nest() -> None:
    nests, sketch = KnownNests(), three_stages()
    known = set(lower_with(nests, sketch.state, {}).body)
    for step, same in ((ComputeInline("a"), 1), (ComputeAt("a", "b", "i"), 1), (Vectorize("c", "j"), 2), (CacheWrite("b"), 2)):
        assert len(known & set(lower_with(nests, sketch.then(step).state, {}).body)) == same, step


def test_a_stage_that_is_read_in_many_ways_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x = last = te.placeholder((8,), name="x")
    for step in range(12):
        twice = te.compute((8,), lambda i, last=last: last[i] * 2.0, name=f"twice{step}")
        last = te.compute((8,), lambda i, last=last, twice=twice: last[i] + twice[i], name=f"sum{step}")
    sketch = Sketch(Dag([x, last]))
    for stage in sketch.state.stages[:-1]:
        sketch = sketch.then(ComputeInline(stage.name))
    looked_at: list[str] = []
    producers = access.producers

    def noted(tensor: Tensor) -> list[Tensor]:
        looked_at.append(tensor.name)
        return producers(tensor)

    monkeypatch.setattr(access, "producers", noted)
    KnownNests().keys(sketch.state, {})
    assert sorted(looked_at) == sorted(stage.name for stage in sketch.state.stages)


def test_numbers_are_the_same_where_they_are_one_column() -> None:
    sketch, recorder, nests = three_stages().then(Split("b", "j", "b.j", 2)), Recorder(), KnownNests()
    first, second = (recorder.numbers(gene, np.array([[2], [4]])) for gene in range(2))
    one, again, other = (lower_with(nests, sketch.state, {"b.j": numbers}).body[1] for numbers in (first, first, second))
    assert one is again and one is not other


def test_packed_operands_are_made_for_each_program() -> None:
    nests, sketch = KnownNests(), three_stages().then(PackInside("b", "a"))
    one, other = (lower_with(nests, sketch.state, {}) for _ in range(2))
    assert str(one) == str(other) and len(one.body) == 4 and len(set(one.body) & set(other.body)) == 2


def test_beyond_a_number_all_are_forgotten_with_their_buffers() -> None:
    nests, sketch = KnownNests(most=3), three_stages()
    first = lower_with(nests, sketch.state, {})
    assert lower_with(nests, sketch.state, {}).body == first.body and len(nests.nests) == 3
    lower_with(nests, sketch.then(Vectorize("c", "j")).state, {})
    assert len(nests.nests) == 4
    again = lower_with(nests, sketch.state, {})
    assert len(nests.nests) == 3 and not set(again.body) & set(first.body) and not set(again.arguments) & set(first.arguments)
    assert str(again) == str(first)


def test_programs_in_which_names_clash_are_lowered_alone() -> None:
    x = te.placeholder((8, 8), name="x")
    first = te.compute((8, 8), lambda i_j, k: x[i_j, k] * 2.0, name="C")
    sketch, nests = Sketch(Dag([x, te.compute((8, 8), lambda j, m: te.exp(first[j, m]), name="C_i")])), KnownNests()
    for one in (sketch, sketch.then(Reorder("C", ("k", "i_j")))):
        assert str(lower_with(nests, one.state, {})) == str(lower(one.state, {}))
    assert not nests.nests


def test_names_of_known_loops_are_taken() -> None:
    """A packed operand gets another name than the loop of a nest that was lowered before."""
    x, other = te.placeholder((12, 8), name="x"), te.placeholder((8, 12), name="a_k")
    before = te.compute((12, 8), lambda k_packed, i: x[k_packed, i] + 1.0, name="a")
    k = te.reduce_axis((0, 8), name="k")
    product = te.compute((12, 12), lambda i, j: te.sum(before[i, k] * other[k, j], axis=k), name="b")
    sketch, nests = Sketch(Dag([x, other, product])).then(PackInside("b", "a_k")), KnownNests()
    for _ in range(2):
        text = str(lower_with(nests, sketch.state, {}))
        assert text == str(lower(sketch.state, {})) and "a_k_packed_: float32" in text
    assert len(nests.nests) == 1
