"""Recorded arithmetic against the same arithmetic on arrays and on single numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor.errors import ScheduleError
from ansor.ir import columns
from ansor.ir.columns import Flag, Int, Row, anywhere, ceil_div, choose, excess, larger, magnitude, multiply_add, negated, smaller, surely_somewhere
from ansor.ir.tape import Column, Recorder, matrix

TABLES = [np.array([[1, 7], [2, 5], [3, 3], [16, 0], [5, -4]]), np.array([[2], [2], [2]]), np.array([[12], [1], [100], [7]])]
GENES = np.array([[a, b, c] for a in range(5) for b in range(3) for c in range(4)])
LARGE = 2**53 - 1

Binary = Callable[[Int, Int], Int]
BINARY: dict[str, Binary] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "floor": lambda a, b: a // (magnitude(b) + 1),
    "remainder": lambda a, b: a % (magnitude(b) + 1), "ceil": lambda a, b: ceil_div(a, magnitude(b) + 1), "smaller": smaller, "larger": larger,
    "less": lambda a, b: choose(a < b, 1, 0), "less equal": lambda a, b: choose(a <= b, 1, 0), "greater": lambda a, b: choose(a > b, 1, 0),
    "greater equal": lambda a, b: choose(a >= b, 1, 0), "equal": lambda a, b: choose(a == b, 1, 0), "unequal": lambda a, b: choose(a != b, 1, 0),
    "both": lambda a, b: choose((a > 0) & (b > 3), a, b), "either": lambda a, b: choose((a > 0) | (b > 3), 3, b),
    "not": lambda a, b: choose(negated(a > b), a, 0),
    "negative": lambda a, b: -a, "magnitude": lambda a, b: magnitude(a - b),
}  # fmt: skip


def numbers(genes: NDArray[np.int64]) -> list[Int]:
    """What the genes stand for, as arrays."""
    return [table[genes[:, k], part] for k, table in enumerate(TABLES) for part in range(table.shape[1])]


def recorded_numbers(recorder: Recorder) -> list[Int]:
    return [number for k, table in enumerate(TABLES) for number in recorder.numbers(k, table)]


def calculation(seed: int, given: list[Int]) -> list[Int]:
    """The same operations on whatever is given; which ones depends on the seed only."""
    rng = np.random.default_rng(seed)
    values: list[Int] = [*given, 0, 1, 3, -2]
    names = sorted(BINARY)
    for _ in range(40):
        a, b = values[int(rng.integers(len(values)))], values[int(rng.integers(len(values)))]
        # Held below 2 ** 53, as all numbers of programs are.
        values.append(smaller(larger(BINARY[names[int(rng.integers(len(names)))]](a, b), -(10**6)), 10**6))
    return values


@pytest.mark.parametrize("seed", range(60))
def test_any_calculation_recorded_and_on_numbers_is_the_one_on_arrays(seed: int) -> None:
    recorder = Recorder()
    wanted = matrix(calculation(seed, recorded_numbers(recorder)), np.float64)
    (found,) = recorder.tape().matrices(GENES, [wanted])
    expected = calculation(seed, numbers(GENES))
    for k, column in enumerate(expected):
        np.testing.assert_array_equal(found[:, k], np.broadcast_to(np.asarray(column), len(GENES)))
    for row in (0, 17, len(GENES) - 1):
        alone = calculation(seed, [int(np.asarray(value)[row]) for value in numbers(GENES)])
        assert found[row].tolist() == alone


def test_floating_point_functions() -> None:
    def calculated(given: list[Int]) -> list[Row]:
        x, y = columns.row(magnitude(given[1])), columns.row(magnitude(given[0]))
        functions = [columns.floor(x / 3), columns.ceil(x / 3), columns.log2(y), columns.log(y), columns.log2_of_one_more(x)]
        sums = [excess(x, y), excess(y, 3.0), excess(3.0, y), multiply_add(x, y, 1.0), multiply_add(x, 2.0, y)]
        return [*functions, *sums, x / y, 2.0 / y, x / 4.0, choose(x > y, math.inf, x), columns.row(x > y)]

    recorder = Recorder()
    (found,) = recorder.tape().matrices(GENES, [matrix([], np.float64)])
    assert found.shape == (len(GENES), 0)
    wanted = matrix(calculated(recorded_numbers(recorder)), np.float64)
    (found,) = recorder.tape().matrices(GENES, [wanted])
    for k, column in enumerate(calculated(numbers(GENES))):
        np.testing.assert_allclose(found[:, k], np.broadcast_to(column, len(GENES)), rtol=1e-15)


def test_powers_of_two_that_divide() -> None:
    values = np.array([0, 1, 6, 8, 96, 4096, 1 << 40, -24, 3 * 2**45])
    wanted = [64.0, 1.0, 2.0, 8.0, 32.0, 64.0, 64.0, 8.0, 64.0]
    recorder = Recorder()
    (column,) = recorder.numbers(0, values.reshape(-1, 1))
    outputs = [matrix([columns.power_of_two_in(columns.row(column), 64.0)], np.float64)]
    (found,) = recorder.tape().matrices(np.arange(len(values)).reshape(-1, 1), outputs)
    assert found[:, 0].tolist() == wanted
    assert np.asarray(columns.power_of_two_in(values.astype(np.float64), 64.0)).tolist() == wanted
    assert [columns.power_of_two_in(int(one), 64.0) for one in values] == wanted


def divided(values: NDArray[np.int64], divisors: NDArray[np.int64]) -> NDArray[np.float64]:
    recorder = Recorder()
    a, b = (recorder.numbers(k, column.reshape(-1, 1))[0] for k, column in enumerate((values, divisors)))
    genes = np.repeat(np.arange(len(values))[:, None], 2, axis=1)
    wanted = matrix([a // b, a % b, ceil_div(a, b)], np.float64)
    (found,) = recorder.tape().matrices(genes, [wanted])
    return found


def hard_divisions() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Dividends up to 2 ** 53, beside multiples of their divisors, where a rounded quotient is nearest to the next integer."""
    rng = np.random.default_rng(0)
    divisors = np.concatenate([[1, 2, 3, 7, 2**26 - 1, 2**26 + 1, LARGE - 1], rng.integers(1, 2 ** rng.integers(1, 53, 400))])
    quotients = rng.integers(0, LARGE // divisors + 1)
    values = np.concatenate([np.clip(sign * quotients * divisors + off, -LARGE, LARGE) for sign in (1, -1) for off in (-1, 0, 1)])
    return values, np.tile(divisors, 6)


def test_division_of_integers_is_exact() -> None:
    values, divisors = hard_divisions()
    found = divided(values, divisors)
    np.testing.assert_array_equal(found[:, 0].astype(np.int64), values // divisors)
    np.testing.assert_array_equal(found[:, 1].astype(np.int64), values % divisors)
    np.testing.assert_array_equal(found[:, 2].astype(np.int64), -(-values // divisors))


def test_what_is_known_is_not_recorded() -> None:
    recorder = Recorder()
    one = recorded_numbers(recorder)
    extent, fixed = one[0], one[2]
    assert fixed == 2 and isinstance(fixed, int)
    assert extent * 0 == 0 and extent * 1 is extent and extent + 0 is extent and extent - extent == 0
    assert smaller(extent, 1) == 1 and larger(extent, 1) is extent and extent % 1 == 0 and extent // 1 is extent
    assert (extent > 0) is True and (extent < 1) is False and (extent == 0) is False and (extent >= extent) is True
    assert choose(extent > 3, 5, 5) == 5


def test_logarithms_of_less_than_one_are_negative() -> None:
    share = columns.row(recorded_numbers(Recorder())[0]) / 3.0
    for function in (columns.log2, columns.log):
        assert isinstance(larger(function(share), 0.0), Column) and isinstance(function(share) < 0, Column)


def test_the_same_is_recorded_once() -> None:
    recorder = Recorder()
    a, _, _, b = recorded_numbers(recorder)
    assert a + b is b + a and a * b is b * a and smaller(a, b) is smaller(b, a)
    flag = a > b
    assert negated(negated(flag)) is flag and choose(flag, 1, 0) is flag


def test_a_column_is_no_number() -> None:
    column = recorded_numbers(Recorder())[0]
    with pytest.raises(TypeError, match="no truth value"):
        bool(column > 3)
    with pytest.raises(TypeError):
        np.minimum(column, 3)


def test_a_recorded_flag_may_hold_and_is_not_known_to() -> None:
    flags: list[Flag] = [recorded_numbers(Recorder())[0] > 3, np.array([False, True]), np.array([False]), True, False]
    assert isinstance(flags[0], Column)
    assert [anywhere(flag) for flag in flags] == [True, True, False, True, False]
    assert [surely_somewhere(flag) for flag in flags] == [False, True, False, True, False]


def test_a_gene_outside_its_table_is_refused() -> None:
    recorder = Recorder()
    wanted = matrix(recorded_numbers(recorder), np.float64)
    for genes in ([[5, 0, 0]], [[0, 0, -1]], [[0, 0]]):
        with pytest.raises(ScheduleError, match="outside its tables"):
            recorder.tape().matrices(np.array(genes), [wanted])


def test_a_tape_is_for_rows_of_some_genes_in_any_order() -> None:
    recorder = Recorder()
    given = recorded_numbers(recorder)
    wanted = matrix([given[0] * 2 + 1, given[0] + given[-1]], np.float64)
    (expected,) = recorder.tape().matrices(GENES, [wanted])
    last = len(TABLES) - 1
    tape = recorder.tape([last, 0])
    (found,) = tape.matrices(GENES[:, [last, 0]], [wanted])
    np.testing.assert_array_equal(found, expected)
    later = matrix([given[-1] * 7], np.float64)
    np.testing.assert_array_equal(recorder.tape([last]).matrices(GENES[:, [last]], [later])[0][:, 0], numbers(GENES)[-1] * 7)
    short, asked = tape.cut([wanted])
    np.testing.assert_array_equal(short.matrices(GENES[:, [last, 0]], asked)[0], expected)
    assert len(short.nodes) == 7 < len(tape.nodes)
