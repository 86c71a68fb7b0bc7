"""What passes leave: fewer operators, and every number of the outputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Table
from ansor.integer.passes import fuse_additions, improved
from ansor.integer.reference import run
from tests.integer.networks import inputs_of
from tests.offload.networks import drawn_network, residual, turned


def limited(network: IntegerNetwork, behind: str, values: np.ndarray, *, apart: bool = False) -> IntegerNetwork:
    """A table behind an operator, which what was behind that reads instead; apart: and the output of the network is also what was there before."""
    table = Table("limited", (behind,), values.astype(np.int8))
    place = next(number for number, one in enumerate(network.operators) if one.output == behind) + 1
    after = (replace(one, inputs=tuple("limited" if name == behind else name for name in one.inputs)) for one in network.operators[place:])
    tensors = {**network.tensors, "limited": replace(network.tensors[behind], name="limited")}
    outputs = tuple("limited" if name == behind else name for name in network.outputs)
    made = replace(network, operators=(*network.operators[:place], table, *after), tensors=tensors, outputs=(*outputs, behind) if apart else outputs)
    return made.checked()


def same(one: IntegerNetwork, other: IntegerNetwork) -> bool:
    given = inputs_of(one, 3)
    left, right = run(one, given), run(other, given)
    return all(np.array_equal(left[name], right[name]) for name in one.outputs)


@given(st.sampled_from(["stem", "body1", "body2", "sum", "last"]), st.integers(-128, 127), st.integers(-128, 127))
def test_clips_are_limits_of_what_is_before(behind: str, one: int, other: int) -> None:
    whole = limited(residual(), behind, np.clip(np.arange(-128, 128), min(one, other), max(one, other)))
    made = improved(whole).checked()
    assert len(made.operators) == len(residual().operators) and not any(isinstance(each, Table) for each in made.operators)
    assert same(whole, made)


@pytest.mark.parametrize(
    "whole",
    [
        limited(residual(), "body1", np.clip(np.arange(-128, 128), 0, 90), apart=True),  # somebody else reads what is before
        limited(residual(), "body1", np.clip(np.arange(-128, 128), 0, 90) // 2),  # no clip
        limited(residual(), "body1", np.arange(-128, 128)[::-1]),
        limited(residual(), "pool", np.clip(np.arange(-128, 128), 0, 90)),  # has no limits of its own
    ],
)
def test_what_stays(whole: IntegerNetwork) -> None:
    made = improved(whole)
    assert sum(isinstance(one, Table) for one in made.operators) == 1 and same(whole, made)


@given(st.integers(0, 500), st.integers(0, 12))
def test_convolutions_add_what_is_added_to_their_results(seed: int, count: int) -> None:
    for whole in (drawn_network(seed, count), turned(drawn_network(seed, count))):
        made = fuse_additions(whole).checked()
        assert same(whole, made) and [one.output for one in fuse_additions(made).operators] == [one.output for one in made.operators]


def test_the_later_operand_is_made_with_the_sum() -> None:
    made = fuse_additions(residual())
    assert [one.output for one in made.operators] == ["stem", "body1", "body2", "sum", "pool", "flat", "last"]
    assert made.operators[3].inputs == ("stem", "body2") and "beside" not in made.tensors


def test_a_clip_behind_a_sum_limits_the_sum_alone() -> None:
    whole = fuse_additions(limited(residual(), "sum", np.clip(np.arange(-128, 128), 3, 90)))
    assert sum(isinstance(one, Table) for one in whole.operators) == 1
    made = improved(whole)
    assert not any(isinstance(one, Table) for one in made.operators) and same(whole, made)


def test_what_others_read_is_made_apart() -> None:
    whole = replace(residual(), outputs=("beside", "last")).checked()
    assert fuse_additions(whole).operators == whole.operators
