"""Split knobs: how many candidates, which, and in which order."""

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor import te
from ansor.errors import ConfigError
from ansor.templates.entities import SplitEntity
from ansor.templates.knob import Axis, VirtualAxis
from ansor.templates.space import ConfigSpace


def sizes(extent: int, policy: str = "factors", **how: object) -> list[list[int]]:
    space = ConfigSpace()
    space.define_split("x", extent, policy, **how)  # type: ignore[arg-type]
    return [space.get(index)["x"].size for index in range(len(space))]


COUNTS = {
    49: ((3, 6, 10), (6, 21, 56), (8, 30, 80)),
    56: ((8, 30, 80), (6, 21, 56), (10, 42, 119)),
    63: ((6, 18, 40), (6, 21, 56), (11, 61, 213)),
    100: ((9, 36, 100), (7, 28, 84), (13, 70, 237)),
    128: ((8, 36, 120), (8, 36, 120), (8, 36, 120)),
    224: ((12, 63, 224), (8, 36, 120), (14, 84, 318)),
    256: ((9, 45, 165), (9, 45, 165), (9, 45, 165)),
    512: ((10, 55, 220), (10, 55, 220), (10, 55, 220)),
    1000: ((16, 100, 400), (10, 55, 220), (22, 201, 1032)),
    1024: ((11, 66, 286), (11, 66, 286), (11, 66, 286)),
}


@pytest.mark.parametrize("extent", COUNTS)
def test_counts(extent: int) -> None:
    found = tuple(tuple(len(sizes(extent, policy, num_outputs=outputs)) for outputs in (2, 3, 4)) for policy in ("factors", "power2", "verbose"))
    assert found == COUNTS[extent]


def test_many_loops_of_a_long_axis() -> None:
    assert len(sizes(2**25, num_outputs=4)) == 3276


@pytest.mark.parametrize("extent, counts", [(1000, (4, 10, 20)), (63, (1, 1, 1)), (224, (6, 21, 56))])
def test_powers_of_two_without_tails(extent: int, counts: tuple[int, ...]) -> None:
    assert tuple(len(sizes(extent, "power2", num_outputs=outputs, no_tail=True)) for outputs in (2, 3, 4)) == counts


@pytest.mark.parametrize("extent", COUNTS)
def test_verbose_without_tails_is_factors(extent: int) -> None:
    assert sizes(extent, "verbose", num_outputs=3, no_tail=True) == sizes(extent, num_outputs=3)


@pytest.mark.parametrize("extent, counts", [(128, (7, 34, 117)), (1000, (10, 68, 304))])
def test_max_factor_bounds_inner_sizes(extent: int, counts: tuple[int, ...]) -> None:
    found = [sizes(extent, num_outputs=outputs, max_factor=64) for outputs in (2, 3, 4)]
    assert tuple(map(len, found)) == counts
    assert max(size for entity in found[2] for size in entity) == (64 if extent == 128 else 50)


def test_order() -> None:
    assert sizes(63, num_outputs=2) == [[-1, inner] for inner in (1, 3, 7, 9, 21, 63)]
    assert sizes(63, "power2", num_outputs=2) == [[-1, inner] for inner in (1, 2, 4, 8, 16, 32)]
    assert sizes(63, "verbose", num_outputs=2) == [[-1, inner] for inner in (1, 2, 3, 4, 7, 8, 9, 16, 21, 32, 63)]
    assert sizes(63, num_outputs=3)[:8] == [[-1, 1, 1], [-1, 3, 1], [-1, 7, 1], [-1, 9, 1], [-1, 21, 1], [-1, 63, 1], [-1, 1, 3], [-1, 3, 3]]
    assert sizes(63, num_outputs=1) == [[-1]] and sizes(1, "verbose", num_outputs=3) == [[-1, 1, 1]]


@given(st.integers(1, 60), st.integers(1, 4), st.sampled_from(["factors", "power2", "verbose"]), st.none() | st.booleans())
def test_enumeration_against_trying_everything(extent: int, outputs: int, policy: str, no_tail: bool | None) -> None:
    powers, factors = {2**i for i in range(7) if 2**i <= extent}, {i for i in range(1, extent + 1) if extent % i == 0}
    table = sorted({"factors": factors, "power2": powers, "verbose": powers | factors}[policy])
    divide = no_tail if no_tail is not None else policy == "factors"
    fine = [inner for inner in product(table, repeat=outputs - 1) if extent % prod(inner) == 0 or (not divide and prod(inner) < extent)]
    assert sizes(extent, policy, num_outputs=outputs, no_tail=no_tail) == [[-1, *inner[::-1]] for inner in fine]


def test_filter_and_candidates() -> None:
    assert sizes(128, num_outputs=2, filter=lambda entity: entity.size[-1] <= 4) == [[-1, 1], [-1, 2], [-1, 4]]
    assert sizes(16, "candidate", num_outputs=3, candidate=[[1, 4, 4], [4, 1, 4]]) == [[1, 4, 4], [4, 1, 4]]
    assert sizes(16, "candidate", num_outputs=2, candidate=[[-1, 4], [-1, 3]], filter=lambda entity: entity.size[1] != 4) == [[-1, 3]]


def test_axes_of_declarations_and_virtual_ones() -> None:
    space = ConfigSpace()
    (outer, inner) = space.define_split("k", te.reduce_axis((0, 64), name="k"), num_outputs=2)
    assert len(space) == 7 and (outer.index, inner.index) == (0, 1) and outer.space is space.space_map["k"] is inner.space
    assert space.axis(space.reduce_axis(12)).length == 12 and VirtualAxis(te.reduce_axis((0, 5), name="r")).name == "r"
    assert repr(VirtualAxis(3, "y")) == "vaxis(y)" and VirtualAxis(3).name != VirtualAxis(3).name


def test_mistakes() -> None:
    space = ConfigSpace()
    (outer, _) = space.define_split("y", 8, num_outputs=2)
    for message, define in {
        "into 0 loops; give num_outputs": lambda: space.define_split("x", 8),
        "by policy 'fastest'; policies are factors, power2, verbose, candidate": lambda: space.define_split("x", 8, "fastest", num_outputs=2),
        "without candidates": lambda: space.define_split("x", 8, "candidate", num_outputs=2),
        r"as \[4, 2\]; give 3 sizes": lambda: space.define_split("x", 8, "candidate", num_outputs=3, candidate=[[4, 2]]),
        r"as \[4, 0\]": lambda: space.define_split("x", 8, "candidate", num_outputs=2, candidate=[[4, 0]]),
        "which leaves no value": lambda: space.define_split("x", 8, num_outputs=2, filter=lambda entity: False),
        "over an output of another knob": lambda: space.define_split("x", outer, num_outputs=2),
        "an axis of 0; give an extent of at least 1": lambda: space.axis(0),
        "an axis of True": lambda: space.axis(True),
        "an axis of 'i'": lambda: space.axis("i"),  # type: ignore[arg-type]
    }.items():
        with pytest.raises(ConfigError, match=message):
            define()  # type: ignore[no-untyped-call]
    assert list(space) == ["y"] and isinstance(outer, Axis)


def test_entities_do_not_change() -> None:
    entity = SplitEntity([-1, 4])
    entity.size.append(3)
    assert entity.size == [-1, 4] and repr(entity) == "[-1, 4]" and entity == SplitEntity((-1, 4)) and hash(entity) == hash(SplitEntity((-1, 4)))
