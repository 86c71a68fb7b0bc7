"""Reorder knobs: how many orders, which, and in which order."""

from itertools import permutations
from math import factorial

import pytest

from ansor import te
from ansor.errors import ConfigError
from ansor.templates.knob import Axis
from ansor.templates.space import ConfigSpace


def orders(space: ConfigSpace, name: str) -> list[list[int]]:
    return [entity.perm for entity in space.space_map[name].entities]  # type: ignore[union-attr]


@pytest.mark.parametrize("axes", range(1, 6))
def test_identity_and_all(axes: int) -> None:
    space = ConfigSpace()
    virtual = [space.axis(8) for _ in range(axes)]
    outputs = space.define_reorder("same", virtual, "identity")
    space.define_reorder("any", virtual, "all")
    assert orders(space, "same") == [list(range(axes))] and [output.index for output in outputs] == list(range(axes))
    assert orders(space, "any") == [list(perm) for perm in permutations(range(axes))] and len(space) == factorial(axes)


def test_interval() -> None:
    space = ConfigSpace()
    space.define_reorder("x", [8] * 5, "interval_all", interval=(1, 4))
    assert len(space) == factorial(3)
    assert orders(space, "x")[:3] == [[0, 1, 2, 3, 4], [0, 1, 3, 2, 4], [0, 2, 1, 3, 4]]


def test_candidates_are_matched_by_axis_identity() -> None:
    space = ConfigSpace()
    y, x = te.Axis("i", 8), te.Axis("i", 8)  # comparing two of them builds an expression
    space.define_reorder("x", [y, x], "candidate", candidate=[[y, x], [x, y]])
    assert orders(space, "x") == [[0, 1], [1, 0]]
    a0, a1 = space.define_split("a", 8, num_outputs=2)
    b0, b1 = space.define_split("b", 8, num_outputs=2)
    space.define_reorder("ab", [a0, b0, a1, b1], "candidate", candidate=[[b1, a1, b0, a0]])
    assert orders(space, "ab") == [[3, 2, 1, 0]]


def chains() -> tuple[ConfigSpace, list[list[Axis]]]:
    space = ConfigSpace()
    return space, [space.define_split(name, 64, num_outputs=outputs) for name, outputs in (("y", 3), ("x", 4), ("k", 2), ("r", 1))]


def test_interleaving_gives_one_order() -> None:
    space, (y, x, k, r) = chains()
    space.define_reorder("o", [*y, *x, *k, *r], "interleave", spatial=[y, x], reduce=[k, r])
    # x has more outer loops than y, so it starts, and then they alternate; among the last loops, k has two, then ties go to the first chain
    assert orders(space, "o") == [[3, 0, 4, 1, 5, 7, 2, 6, 8, 9]]
    space.define_reorder("g", [*y, *x, *k, *r], "interleave_cuda", spatial=[y, x], reduce=[k, r])
    assert orders(space, "g") == [[3, 0, 4, 1, 5, 7, 8, 9, 2, 6]]


def test_mistakes() -> None:
    space = ConfigSpace()
    y, x = space.axis(4), space.axis(4)
    for message, define in {
        "policies are identity, all": lambda: space.define_reorder("x", [y, x], "random"),
        r"interval \(1, 3\)": lambda: space.define_reorder("x", [y, x], "interval_all", interval=(1, 3)),
        "interval None": lambda: space.define_reorder("x", [y, x], "interval_all"),
        "without candidate": lambda: space.define_reorder("x", [y, x], "candidate"),
        "without spatial": lambda: space.define_reorder("x", [y, x], "interleave", reduce=[]),
        "not among its axes": lambda: space.define_reorder("x", [y, x], "candidate", candidate=[[y, space.axis(4)]]),
    }.items():
        with pytest.raises(ConfigError, match=message):
            define()  # type: ignore[no-untyped-call]
