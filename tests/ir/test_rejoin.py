"""Sums of quotients and remainders with fewer divisions, of the same value."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ansor.ir.interpreter import index_value
from ansor.ir.linear import Linear, Quotient, Remainder, Var, of
from ansor.ir.rejoin import rejoined
from ansor.ir.simplify import simplified_index

F, G = Var("f", 24), Var("g", 20)
WHOLE = of(F) * 20 + of(G)


def quotient(value: Linear, divisor: int) -> Linear:
    return of(Quotient(value, divisor))


def remainder(value: Linear, divisor: int) -> Linear:
    return of(Remainder(value, divisor))


def divisions(linear: Linear) -> int:
    """How many there are, nested ones included."""
    return sum(1 + divisions(atom.value) for atom, _ in linear.terms if isinstance(atom, Quotient | Remainder))


def values(linear: Linear, *loops: Var) -> list[int]:
    """The value in each iteration."""
    return [index_value(linear, {}, dict(zip(loops, at, strict=True))) for at in itertools.product(*(range(int(loop.extent)) for loop in loops))]


JOINED = {
    "two digits": (quotient(of(F), 4) * 4 + remainder(of(F), 4), 0),
    "two of three digits": (remainder(quotient(of(F), 2), 3) * 2 + remainder(of(F), 2), 1),
    "a simplified quotient": (quotient(of(F), 8) * 160 + remainder(WHOLE, 160), 0),
    "a simplified remainder of a quotient": (remainder(of(F), 8) * 20 + remainder(WHOLE, 20), 1),
    "with a constant and others": (quotient(WHOLE + 3, 160) * 480 + remainder(WHOLE + 3, 160) * 3 + of(G) * 7 + 5, 0),
    "other strides": (quotient(of(F), 4) * 5 + remainder(of(F), 4), 2),
    "of different values": (quotient(of(F), 4) * 4 + remainder(of(G), 4), 2),
}


@pytest.mark.parametrize("case", JOINED)
def test_known_sums(case: str) -> None:
    linear, left = JOINED[case]
    found = rejoined(linear)
    assert divisions(found) == left
    assert values(found, F, G) == values(linear, F, G)


@pytest.mark.parametrize("seed", range(300))
def test_the_value_is_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loops = tuple(Var(f"v{place}", int(rng.choice([1, 2, 3, 4, 6]))) for place in range(3))
    fused = Linear((), int(rng.integers(0, 4)) * int(rng.random() < 0.3))
    step = 1
    for loop in reversed(loops):
        fused = fused + of(loop) * step
        step *= int(loop.extent) if rng.random() < 0.8 else int(rng.integers(1, 5))
    stride, extents, total = 1, [int(rng.choice([2, 3, 4, 6, 12])) for _ in range(3)], Linear()
    for extent in extents:
        digit = remainder(quotient(fused, stride), extent) if rng.random() < 0.7 else quotient(fused, stride)
        total = total + (simplified_index(digit) if rng.random() < 0.5 else digit) * (stride if rng.random() < 0.8 else int(rng.integers(1, 13)))
        stride *= extent
    found = rejoined(total)
    assert values(found, *loops) == values(total, *loops)
    assert divisions(found) <= divisions(total)
