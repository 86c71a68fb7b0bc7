"""Sizes that are open."""

import math

import pytest

from ansor import te
from ansor.errors import DeclarationError
from ansor.te.size import Size, open_size, stand_in, value_of


def test_arithmetic_is_done_again_for_other_values() -> None:
    n, m = open_size("n"), open_size("m")
    values = {n.key: 10, m.key: 3}
    for found, text, value in (
        (n + 1, "(n + 1)", 11), (2 * n - m, "((2 * n) - m)", 17), (-n // 4, "((0 - n) // 4)", -3), (n % m, "(n % m)", 1), (7 % m, "(7 % m)", 1),
        (math.prod((n, m)), "((1 * n) * m)", 30),
    ):  # fmt: skip
        assert isinstance(found, Size) and str(found) == text and value_of(found, values) == value
    assert value_of(5, values) == 5 and stand_in(5) == 5 and stand_in(n) == n.stands_as != m.stands_as and not n.guards


def test_what_is_decided_holds_for_some_sizes_only() -> None:
    n = open_size("n")
    assert n > 8 and n == n and n != 1 and n  # a size is itself, whatever it is
    other = open_size("n")
    assert n != other and other.guards == [] and n + 1 == n + 1
    for guard in n.guards[:3]:
        guard.check({n.key: 9})
    with pytest.raises(DeclarationError, match=r"asked to run with n = 8; it was declared as if gt\(n, 8\) is True for all sizes"):
        n.guards[0].check({n.key: 8})


@pytest.mark.parametrize("use", [range, lambda n: [0] * n, float, int, lambda n: n / 2, math.sqrt])
def test_taken_for_a_number_it_has_to_be_that(use: object) -> None:
    n = open_size("n")
    assert callable(use)
    use(n)
    n.guards[0].check({n.key: n.stands_as})
    with pytest.raises(DeclarationError, match=rf"eq\(n, {n.stands_as}\) is True"):
        n.guards[0].check({n.key: 5})


def test_declarations_take_them() -> None:
    n = open_size("n")
    x = te.placeholder((n, 4), name="x")
    y = te.compute((n, 4), lambda i, j: x[n - 1 - i, j] * 2.0, name="y")
    assert y.shape == x.shape and str(y.op.body[0]).startswith("(x[") and te.reduce_axis((1, n), "k").extent == n - 1
