"""What the model learned from, what the project looks at, and what nothing was chosen on stay apart, by families."""

from __future__ import annotations

import pytest
from operator_sets import LEGEND, MARKS, OF_NETWORKS, SETS, mark, set_of
from pristine_operators import FAMILIES, OPERATORS
from suite import ROWS

from ansor import te
from ansor.dataset.family import reductions

pytestmark = pytest.mark.torch

LEARNED, TUNED_ON, PRISTINE = SETS


def test_no_family_of_the_pristine_set_was_learned_or_looked_at() -> None:
    assert not PRISTINE.families & (LEARNED.families | TUNED_ON.families)
    assert not {"; ".join(one) for one in PRISTINE.families} & set(OF_NETWORKS)
    assert {set_of(declare()) for declare in OPERATORS.values()} == {"pristine"}


def test_every_operator_of_the_benchmarks_is_of_a_set() -> None:
    found = {row.name: set_of(row.operator().declare()) for row in ROWS}
    assert set(found.values()) == {"learned", "tuned on"}
    assert {name for name, one in found.items() if one == "tuned on"} == {"bert_gelu", "attention_scores", "attention_scores_b16"}


def test_what_is_of_no_set_is_told() -> None:
    a, i = te.placeholder((4, 5, 6), name="a"), te.reduce_axis(5, "i")
    with pytest.raises(LookupError, match="which is in none; add its operator to a set"):
        set_of([a, te.compute((4, 6), lambda x, y: te.min(a[x, i, y] * te.tanh(a[x, i, y]), axis=i))])


def test_no_two_pristine_families_are_one() -> None:
    named: dict[tuple[str, ...], str] = {}
    for name, (declare, *sizes) in FAMILIES.items():
        assert len(sizes) == 2
        for size in sizes:
            assert named.setdefault(reductions(declare(*size)), name) == name


def test_marks_are_in_the_legend() -> None:
    assert {sign.strip() for sign in MARKS.values() if sign} == {"*", "+", "-"} and all(f"{sign.strip()} " in LEGEND for sign in MARKS.values() if sign)
    assert {name: mark(row.operator().declare()) for row in ROWS if (name := row.name) in ("matmul_512", "matmul_1024", "bert_gelu")} == {
        "matmul_512": " *", "matmul_1024": " +", "bert_gelu": "",
    }  # fmt: skip
