"""What passes leave: fewer operators, and every number of the outputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.integer.network import IntegerNetwork
from ansor.integer.operators import Table
from ansor.integer.passes import improved
from ansor.integer.reference import run
from tests.integer.networks import inputs_of
from tests.offload.networks import residual


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
