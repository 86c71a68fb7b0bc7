"""Padding with mirrored elements, against NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import ansor
from ansor import te
from ansor.errors import DeclarationError
from ansor.te import nn

Run = Callable[..., NDArray[np.float32]]
MODES = ["SYMMETRIC", "REFLECT"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("before", "after"), [((0, 0), (0, 0)), ((1, 2), (1, 2)), ((0, 3), (2, 0)), ((2, 0), (0, 3)), ((2, 3), (2, 3))])
def test_mirror_pad(run: Run, mode: str, before: tuple[int, int], after: tuple[int, int]) -> None:
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    want = np.pad(x, list(zip(before, after, strict=True)), mode.lower())  # type: ignore[call-overload]  # a mode by name
    np.testing.assert_array_equal(run(lambda a: nn.mirror_pad(a, before, after, mode), x), want)


@pytest.mark.compiler
@pytest.mark.parametrize("mode", MODES)
def test_mirror_pad_compiled(mode: str) -> None:
    x = te.placeholder((5, 19), name="x")
    given = np.random.default_rng(0).random((5, 19)).astype(np.float32)
    got = ansor.auto_schedule([x, nn.mirror_pad(x, (2, 3), (4, 1), mode)], trials=0, target="cpu -threads=1")(given)
    np.testing.assert_array_equal(got, np.pad(given, [(2, 4), (3, 1)], mode.lower()))  # type: ignore[call-overload]


def test_what_is_not_there_is_not_mirrored() -> None:
    x = te.placeholder((4,), name="x")
    assert nn.mirror_pad(x, (4,)).shape == (12,)
    with pytest.raises(DeclarationError, match="not enough elements to mirror"):
        nn.mirror_pad(x, (4,), mode="REFLECT")
    with pytest.raises(DeclarationError, match="not enough elements to mirror"):
        nn.mirror_pad(x, (0,), (5,))
    with pytest.raises(DeclarationError, match="'SYMMETRIC' or 'REFLECT'"):
        nn.mirror_pad(x, (1,), mode="EDGE")
    with pytest.raises(DeclarationError, match="one per dimension"):
        nn.mirror_pad(x, (1, 1))
