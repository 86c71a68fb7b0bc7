"""Runs whose first programs all fail alike end early; single failures are like any other."""

from __future__ import annotations

import pytest

from ansor.errors import MeasureError
from ansor.measure.failure import Failure
from ansor.run.first_failures import ALIKE, FirstFailures


def test_alike_ones_stop_the_run_and_are_not_written() -> None:
    first, written = FirstFailures(), list[int]()
    for number in range(ALIKE - 1):
        first.keep(Failure("compile", f"/tmp/x{number}/candidate{number}.c: unknown argument '-mllvm'"), lambda number=number: written.append(number))  # type: ignore[misc]
    with pytest.raises(MeasureError, match=r"first 6 programs all fail in the same way.*.*unknown argument.*`ansor doctor`.*none of them was recorded"):
        first.keep(Failure("compile", "/tmp/y/candidate9.c: unknown argument '-mllvm'"), lambda: written.append(9))
    first.settle()
    assert written == []


@pytest.mark.parametrize("other", [None, Failure("compile", "another reason"), Failure("crash", "SIGSEGV"), Failure("load", "unknown argument")])
def test_one_of_another_kind_and_all_count(other: Failure | None) -> None:
    first, written = FirstFailures(), list[int]()
    for number in range(3):
        first.keep(Failure("compile", "unknown argument"), lambda number=number: written.append(number))  # type: ignore[misc]
    assert written == []
    first.keep(other, lambda: written.append(3))
    for _ in range(2 * ALIKE):
        first.keep(Failure("compile", "unknown argument"), lambda: written.append(4))
    assert written == [0, 1, 2, 3] + [4] * 2 * ALIKE


def test_a_run_that_ends_before_that_is_known_writes_them() -> None:
    first, written = FirstFailures(), list[int]()
    first.keep(Failure("reference", "it does not build"), lambda: written.append(1))
    first.settle()
    assert written == [1]


@pytest.mark.parametrize(("text", "cure"), [
    ("a frame larger than the stack: a function of the program needs 9,000 bytes of it at once; x has 4,096", "choose smaller tiles .*run.stack in"),
    ("the program needs 9,000 bytes for its arguments and 1 of workspace; x has 4,096", "choose smaller sizes, or another board"),
])  # fmt: skip
def test_what_is_too_large_says_what_to_make_smaller(text: str, cure: str) -> None:
    first = FirstFailures()
    with pytest.raises(MeasureError, match=f"too large for the device: does_not_fit: {text}; {cure}"):
        for _ in range(ALIKE):
            first.keep(Failure("does_not_fit", text), lambda: None)
