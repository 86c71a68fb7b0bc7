"""Tapes run in C against the same tapes run in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.codegen import tape_library
from ansor.codegen.tape_library import BLOCK, runner
from ansor.errors import ScheduleError, ToolchainError
from ansor.ir.columns import Int, Row, ceil, ceil_div, choose, floor, log, log2, log2_of_one_more, power_of_two_in, row
from ansor.ir.tape import Matrix, Recorder, Tape, matrix
from tests.ir.test_tape import GENES, calculation, hard_divisions, recorded_numbers

pytestmark = pytest.mark.compiler


def taped(seed: int) -> tuple[Tape, list[Matrix]]:
    """A calculation with all kinds of output."""
    recorder = Recorder()
    values = calculation(seed, recorded_numbers(recorder))
    flags = [value > 3 for value in values]
    return recorder.tape(), [matrix(values, np.float64), matrix(flags, np.bool_), matrix(values[::-1], np.float32)]


@pytest.mark.parametrize("seed", range(60))
def test_any_calculation(seed: int) -> None:
    tape, wanted = taped(seed)
    for found, expected in zip(runner(tape, wanted)(GENES), tape.matrices(GENES, wanted), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, BLOCK, BLOCK + 1, 5 * BLOCK - 3])
def test_rows_do_not_know_of_each_other(count: int) -> None:
    tape, wanted = taped(1)
    genes = GENES[np.random.default_rng(0).integers(0, len(GENES), count)]
    run = runner(tape, wanted)
    for together, *alone in zip(run(genes), *(run(genes[k : k + 1]) for k in range(count)), strict=True):
        np.testing.assert_array_equal(together, np.concatenate([together[:0], *alone]))


def test_genes_in_any_memory_order() -> None:
    tape, wanted = taped(2)
    run = runner(tape, wanted)
    for some in (GENES[::-1], np.asfortranarray(GENES)):
        np.testing.assert_array_equal(run(some)[0], run(np.ascontiguousarray(some, np.int64))[0])


def test_division_of_integers_is_exact() -> None:
    values, divisors = hard_divisions()
    recorder = Recorder()
    a, b = (recorder.numbers(k, column.reshape(-1, 1))[0] for k, column in enumerate((values, divisors)))
    genes = np.repeat(np.arange(len(values))[:, None], 2, axis=1)
    wanted = matrix([a // b, a % b, ceil_div(a, b)], np.float64)
    (found,) = runner(recorder.tape(), [wanted])(genes)
    np.testing.assert_array_equal(found.astype(np.int64), np.stack([values // divisors, values % divisors, -(-values // divisors)], axis=1))


def test_functions_of_floating_point() -> None:
    table = np.unique(np.concatenate([np.arange(1, 3000), 2 ** np.arange(50), 2 ** np.arange(2, 50) - 1, 2 ** np.arange(50) + 1])).reshape(-1, 1)
    recorder = Recorder()
    (x,) = recorder.numbers(0, table)
    value, near = row(x), row(x) / 3e9 + 1.0

    def results(value: Row, near: Row) -> list[Row]:
        logarithms = [log2(value), log(value), log2_of_one_more(value), log2(near), log2(1.0 / value), log(3.0 / value), log2(near - 0.5)]
        return [*logarithms, floor(value / 7.0), ceil(value / 7.0), value / 7.0, choose(value > 5.0, value, 1.5), power_of_two_in(value, 4096.0)]

    (found,) = runner(recorder.tape(), [matrix([], np.float64)])(np.zeros((3, 1), np.int64))
    assert found.shape == (3, 0)
    wanted = matrix(results(value, near), np.float64)
    (found,) = runner(recorder.tape(), [wanted])(np.arange(len(table))[:, None])
    numbers = table[:, 0].astype(np.float64)
    np.testing.assert_allclose(found, np.stack(results(numbers, numbers / 3e9 + 1.0), axis=1), rtol=1e-15)


def test_an_operand_that_stands_twice_and_values_that_nobody_wants() -> None:
    recorder = Recorder()
    a, _, _, b = recorded_numbers(recorder)
    unused: list[Int] = [a * b * k for k in range(2, 9)]
    square = a * a
    values = [square, square * square, choose(a > b, square, square + 1), a, a]
    assert len(unused) == 7
    tape, wanted = recorder.tape(), [matrix(values, np.float64)]
    np.testing.assert_array_equal(runner(tape, wanted)(GENES)[0], tape.matrices(GENES, wanted)[0])


def test_a_gene_outside_its_table_is_refused() -> None:
    tape, wanted = taped(0)
    for genes in ([[5, 0, 0]], [[0, 0, -1]], [[0, 0, 2**40]], [[0, 0]]):
        with pytest.raises(ScheduleError, match="outside its tables"):
            runner(tape, wanted)(np.array(genes))


def test_without_a_compiler_numpy_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(command: str = "") -> None:
        raise ToolchainError("no C compiler")

    monkeypatch.setattr(tape_library, "find_compiler", missing)
    tape_library._library.cache_clear()
    tape, wanted = taped(3)
    with pytest.warns(RuntimeWarning, match="programs are described by NumPy, which takes many times as long: no C compiler"):
        run = runner(tape, wanted)
    tape_library._library.cache_clear()
    assert not isinstance(run, tape_library._RegisterTape)
    np.testing.assert_array_equal(run(GENES)[0], tape.matrices(GENES, wanted)[0])
