"""Annotation knobs: how many annotations, which, and in which order."""

from math import comb

import pytest

from ansor.errors import ConfigError
from ansor.templates.space import ConfigSpace


def annotations(number: int, policy: str, **how: int) -> list[list[str | int]]:
    space = ConfigSpace()
    outputs = space.define_annotate("x", [8] * number, policy, **how)
    assert [output.index for output in outputs] == list(range(number))
    return [space.get(index)["x"].anns for index in range(len(space))]


@pytest.mark.parametrize("number", range(1, 5))
def test_counts(number: int) -> None:
    assert len(annotations(number, "none")) == len(annotations(number, "unroll")) == 1
    assert len(annotations(number, "try_unroll")) == 2**number
    assert len(annotations(number, "try_vec")) == number + 1
    assert len(annotations(number, "try_unroll_vec")) == 2**number + number * 2 ** (number - 1) == (3, 8, 20, 48)[number - 1]


def test_order() -> None:
    assert annotations(1, "vec") == [["vec"]]
    assert annotations(2, "try_unroll") == [["none", "none"], ["none", "unroll"], ["unroll", "none"], ["unroll", "unroll"]]
    assert annotations(2, "try_vec") == [["none", "none"], ["none", "vec"], ["vec", "none"]]
    assert annotations(2, "try_unroll_vec")[:4] == [["none", "none"], ["none", "unroll"], ["none", "vec"], ["unroll", "none"]]


def test_bindings_depend_on_the_number_of_axes() -> None:
    six = ["blockIdx.z", "blockIdx.y", "blockIdx.x", "threadIdx.z", "threadIdx.y", "threadIdx.x"]
    four = ["blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"]
    two = ["blockIdx.x", "threadIdx.x"]
    wanted = {2: two, 3: ["fuse", *two], 4: four, 5: ["fuse", *four], 6: six, 8: ["fuse", "fuse", *six]}
    assert {number: annotations(number, "bind_gpu") for number in wanted} == {number: [names] for number, names in wanted.items()}
    virtual = {number: annotations(number, "bind_gpu_virtual")[0] for number in (3, 5, 6, 9, 10)}
    assert virtual[3] == ["blockIdx.x", "vthread", "threadIdx.x"] == virtual[5][2:]
    assert virtual[6] == ["blockIdx.y", "blockIdx.x", "vthread", "vthread", "threadIdx.y", "threadIdx.x"]
    assert virtual[9] == [*six[:3], "vthread", "vthread", "vthread", *six[3:]] == virtual[10][1:]


def test_caches_attach_to_every_choice_of_axes() -> None:
    assert annotations(3, "locate_cache", num_anchor=2) == [[0, 1], [0, 2], [1, 2]]
    assert len(annotations(6, "locate_cache", num_anchor=3)) == comb(6, 3)


@pytest.mark.parametrize("number, policy, message", [
    (2, "vec", "which leaves no value"), (2, "try_parallel", "policies are none, unroll, vec"), (1, "bind_gpu", "at least 2 axes"),
    (2, "bind_gpu_virtual", "at least 3 axes"), (2, "locate_cache", "num_anchor=None"),
])  # fmt: skip
def test_mistakes(number: int, policy: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        annotations(number, policy)
