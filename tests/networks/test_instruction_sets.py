"""Instruction sets of exported networks, by name."""

from __future__ import annotations

from typing import Any

import pytest

from ansor.errors import ArgumentError
from ansor.networks.instruction_sets import instruction_sets


def test_the_fallback_is_last_whatever_is_asked_for() -> None:
    assert [one.name for one in instruction_sets(("x86-64-v2", "x86-64-v4"))] == ["x86-64-v4", "x86-64-v2", "c99"]
    assert [one.name for one in instruction_sets(())] == ["c99"]


@pytest.mark.parametrize(("wrong", "told"), [
    (["x86-64-v3", "x86-64-v4x"], r"\['x86-64-v3', 'x86-64-v4x'\] \(did you mean x86-64-v4\?\); give a tuple of x86-64-v2, "),
    ("x86", "'x86'; give a tuple of"),
    (["native"], r"\['native'\]; for this machine's processor alone, export the network that ansor.compile returns"),
    (5, "5; give a tuple of"), (None, "None; give a tuple of"),
])  # fmt: skip
def test_what_is_no_instruction_set_is_told_with_what_there_is(wrong: Any, told: str) -> None:
    with pytest.raises(ArgumentError, match=f"^asked for a network for {told}"):
        instruction_sets(wrong)


def test_one_name_instead_of_a_tuple() -> None:
    with pytest.raises(ArgumentError, match=r"^isas='x86-64-v3' is a string; give a tuple: \('x86-64-v3',\)$"):
        instruction_sets("x86-64-v3")
