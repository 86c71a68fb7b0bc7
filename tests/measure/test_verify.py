import tracemalloc
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ansor.measure import verify
from ansor.measure.verify import INSENSITIVE, Sensitivity, difference, fill_unwritten, fill_workspace, growth, moves_of, tolerance, tolerances, with_plain


@given(st.integers(1, 3000), st.sampled_from(["float32", "float64"]), st.booleans(), st.integers(0, 2**32))
def test_any_order_of_a_sum_is_right_and_a_missing_term_is_not(length: int, dtype: str, positive: bool, seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = generator.uniform(0 if positive else -1, 1, (2, 8, length)).astype(dtype)
    expected = (a.astype(np.float64) * b).sum(axis=1)
    found = np.cumsum(a * b, axis=1, dtype=dtype)[:, -1].copy()  # one after the other: the worst usual order
    assert difference("C", found, expected, reduction=length) == ""
    term = int(np.argmax(np.abs(a[5] * b[5])))
    found[5] -= a[5, term] * b[5, term]
    assert "1 of 8 elements wrong, first at (5,)" in difference("C", found, expected, reduction=length)


def test_integers_and_bools_are_exact() -> None:
    a = np.arange(6, dtype=np.int8).reshape(2, 3)
    assert difference("C", a, a.copy()) == ""
    b = a.copy()
    b[1, 2] = 0
    assert "(1, 2): found 0, expected 5" in difference("C", b, a)
    flags = np.array([True, False])
    assert difference("C", flags, flags) == "" and difference("C", ~flags, flags)
    raw = np.array([0xA5, 0], dtype=np.uint8).view(np.bool_)
    assert difference("C", raw, flags)  # true, but no bool


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8", "bool"])
def test_unwritten_elements_are_seen(dtype: str) -> None:
    output = np.empty(4, dtype=dtype)
    fill_unwritten(output)
    expected = np.full(4, np.nan if dtype.startswith("f") else 1).astype(dtype)
    assert "4 of 4" in difference("C", output, expected)
    output[...] = expected
    assert difference("C", output, expected) == ""


@pytest.mark.parametrize("combine", [np.fmax, np.fmin, np.maximum, np.minimum, np.add])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int16", "int32", "int64"])
def test_what_combines_with_an_output_that_it_did_not_begin_is_refused(dtype: str, combine: Callable[..., NDArray[np.generic]]) -> None:
    """As a maximum that begins with what the output held before: after a call with the same inputs it would look right."""
    expected = np.array([1, 3, 2, 5, 4, 7], dtype)
    output = np.empty_like(expected)
    fill_unwritten(output)
    with np.errstate(over="ignore", invalid="ignore"):
        assert "wrong" in (text := difference("C", combine(output, expected), expected)) or "never written" in text


@pytest.mark.parametrize("size", [0, 5, 8, 16, 31, 1000])
def test_a_workspace_holds_large_numbers_of_both_signs_and_nan(size: int) -> None:
    first, second = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    fill_workspace(first)
    fill_workspace(second, 1)
    assert (first != second).all() and first.tobytes() == (bytes.fromhex("dadadaff" * 2 + "5a" * 8) * (size // 16 + 1))[:size]
    if size == 16:
        floats, numbers = first.view(np.float32), first.view(np.int32)
        assert np.isnan(floats[:2]).all() and (floats[2:] > 1e16).all() and (numbers[:2] < -1e6).all() and (numbers[2:] > 1e9).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int32", "bool"])
def test_outputs_begin_with_other_values_before_a_second_call(dtype: str) -> None:
    first, second = np.zeros((2, 5), dtype), np.zeros((2, 5), dtype)
    fill_unwritten(first)
    fill_unwritten(second, 1)
    assert (first.view(np.uint8).reshape(10, -1) != second.view(np.uint8).reshape(10, -1)).any(axis=1).all()


def test_infinities_and_nan() -> None:
    expected = np.array([np.inf, -np.inf, np.nan, 1e300, 1.0])
    found = np.array([np.inf, -np.inf, 3.0, np.inf, 1.0], dtype=np.float32)
    assert difference("C", found, expected) == ""
    for index, value in ((0, 1.0), (1, np.inf), (3, 1.0), (4, np.nan), (4, np.inf)):
        wrong = found.copy()
        wrong[index] = value
        assert f"1 of 5 elements wrong, first at ({index},)" in difference("C", wrong, expected)


def test_halves_round_overflow_and_stand_still_as_they_do() -> None:
    wide = np.array([1.0, 65500.0, 65600.0, 1e6, -np.inf])
    found = np.array([1.01, np.inf, 65504.0, np.inf, -np.inf], dtype=np.float16)
    assert difference("C", found, wide) == ""
    assert "first at (0,): found 0.3" in difference("C", np.array([0.3], np.float16), np.array([1.0]))
    assert "first at (1,)" in difference("C", np.array([1.0, np.inf], np.float16), np.array([1.0, 2.0]))
    assert "first at (1,)" in difference("C", np.array([1.0, 65504.0], np.float16), np.array([1.0, np.inf]))
    assert tolerance("float16", 64, 1.0) == pytest.approx(24 * 2.0**-10, rel=0.01) and tolerance("float16", 1 << 13, 1.0) < 0.26


@pytest.mark.parametrize("length", [1, 9, 64, 300, 1000, 2000])
@pytest.mark.parametrize("low", [-1, 0])
def test_sums_of_halves_in_order_are_right(length: int, low: int) -> None:
    a = np.random.default_rng(length).uniform(low, 1, (32, length)).astype(np.float16)
    found = np.zeros(32, np.float16)
    for k in range(length):
        found = found + a[:, k]
    assert difference("C", found, a.astype(np.float64).sum(axis=1), reduction=length, moves=Sensitivity(length**0.5 * 2.0**-10)) == ""
    assert difference("C", np.zeros(32, np.float16), a.astype(np.float64).sum(axis=1), reduction=length)


def test_a_float32_output_computed_in_halves_is_as_exact_as_halves() -> None:
    found, expected = np.array([1.001], np.float32), np.array([1.0])
    assert difference("C", found, expected) and difference("C", found, expected, rounding="float16") == ""


def test_rank_zero() -> None:
    assert difference("C", np.array(1.0, dtype=np.float32), np.array(1.0)) == ""
    assert "first at ()" in difference("C", np.array(2.0, dtype=np.float32), np.array(1.0))


def test_tolerance_grows_with_the_root_of_the_reduction_and_with_the_output() -> None:
    assert tolerance("float32", 1, 1.0) < tolerance("float32", 10_000, 1.0) == pytest.approx(2.0e-5 * 1.24, rel=0.01)
    assert tolerance("float32", 1, 100.0) == pytest.approx(100 * tolerance("float32", 1, 1.0))
    assert tolerance("float32", 1, 1e-5) == pytest.approx(1e-5 * tolerance("float32", 1, 1.0))


def test_an_algorithm_may_state_a_larger_error() -> None:
    expected = np.ones(4)
    found = (expected * (1 + 3e-6)).astype(np.float32)
    assert difference("y", found, expected) and not difference("y", found, expected, stated=4.0)
    assert difference("y", (expected * (1 + 1e-4)).astype(np.float32), expected, stated=4.0)


def test_a_zero_by_cancellation_has_the_scale_of_the_inputs() -> None:
    a, b = np.random.default_rng(0).uniform(-1, 1, (2, 1000)).astype(np.float32)
    wide = a.astype(np.float64) + b - a - b
    assert difference("C", (a + b) - a - b, wide, input_scale=1.0) == ""
    assert difference("C", (a + b) - a - b + np.float32(1e-4), wide, input_scale=1.0)


def sequential(terms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sums over the last axis, one term after the other."""
    return np.cumsum(terms, axis=-1, dtype=np.float32)[..., -1].copy()


def in_chunks(terms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sums over the last axis by eight lanes, each one term after the other."""
    cut = terms.shape[-1] // 8 * 8
    lanes = np.swapaxes(terms[..., :cut].reshape(*terms.shape[:-1], cut // 8, 8), -1, -2)
    return np.asarray(sequential(sequential(lanes)) + terms[..., cut:].sum(-1), dtype=np.float32)


def pairwise(terms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sums over the last axis as NumPy does."""
    return np.asarray(terms.sum(axis=-1), dtype=np.float32)


ORDERS = (sequential, in_chunks, pairwise)
Sum = Callable[[NDArray[np.float32]], NDArray[np.float32]]


def softmax(x: NDArray[np.float32], total: Sum) -> NDArray[np.float32]:
    powers = np.exp(x - x.max())
    return np.asarray(powers / total(powers), dtype=np.float32)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("length", [1000, 50_000])
def test_softmax_is_held_to_its_own_size(length: int, order: Sum) -> None:
    x = np.random.default_rng(1).uniform(-1, 1, length).astype(np.float32)
    wide = np.exp(x.astype(np.float64))
    wide /= wide.sum()
    found = softmax(x, order)
    assert difference("C", found, wide, reduction=length) == ""
    for element in (0, int(np.argmax(wide)), int(np.argmin(wide))):
        wrong = found.copy()
        wrong[element] *= np.float32(1.01)
        assert "1 of" in difference("C", wrong, wide, reduction=length)
    for factor in (0, 0.5, 1.01):
        assert difference("C", found * np.float32(factor), wide, reduction=length)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("length", [1000, 1_000_000])
def test_long_sums_and_means_however_small_they_end(length: int, order: Sum) -> None:
    generator = np.random.default_rng(2)
    for centre in (0.0, -0.5):
        x = generator.uniform(-1, 1, length).astype(np.float32) - np.float32(centre)
        for near_zero in (False, True):
            if near_zero and not centre:
                x[-1] -= np.float32(x.astype(np.float64).sum())
            wide = np.atleast_1d(x.astype(np.float64).mean())
            moved = [np.atleast_1d((x * (1 - generator.random(length) * 2**-23)).mean()) for _ in range(3)]
            mean = np.atleast_1d(order(x) / np.float32(length))
            moves = moves_of(wide, moved)
            assert difference("C", mean, wide, reduction=length, input_scale=2, moves=moves) == ""
            if not near_zero:
                for wrong in (0 * mean, mean / 2, mean * np.float32(1.01)):
                    assert difference("C", wrong, wide, reduction=length, input_scale=2, moves=moves)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("length", [512, 3 * 3 * 512])  # of a matmul, of a convolution
def test_sums_of_products(length: int, order: Sum) -> None:
    a, b = np.random.default_rng(3).uniform(-1, 1, (2, 200, length)).astype(np.float32)
    wide = (a.astype(np.float64) * b).sum(-1)
    found = order(a * b)
    assert difference("C", found, wide, reduction=length) == ""
    found[3] -= a[3, 5] * b[3, 5]
    assert "1 of 200" in difference("C", found, wide, reduction=length)


def repeated(length: int, rows: int = 8) -> NDArray[np.float32]:
    """Sums whose terms are one number each."""
    return np.repeat(np.linspace(0.5, 0.9, rows, dtype=np.float32)[:, None], length, axis=1)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("length", [10_000, 1_000_000])
def test_sums_of_terms_that_repeat_are_as_exact_as_the_plain_program(length: int, order: Sum) -> None:
    x = repeated(length)
    wide = x.astype(np.float64).sum(-1)
    moves = moves_of(wide, [(x * (1 - np.random.default_rng(7).random(x.shape) * 2**-23)).sum(-1)])
    measured = with_plain(moves, wide, sequential(x), length)
    found = order(x)
    assert difference("C", found, wide, reduction=length, moves=measured) == ""
    assert difference("C", sequential(x), wide, reduction=length, moves=moves), "the roundings of these terms do not cancel"
    for wrong in (0 * found, found / 2, found * np.float32(1.3)):
        assert "8 of 8" in difference("C", wrong, wide, reduction=length, moves=measured)


@pytest.mark.parametrize("term", [0.1, None])
def test_sums_in_double_are_held_to_double(term: float | None) -> None:
    """In any order, also of terms that repeat; sums in float32 are refused."""
    length = 100_000
    x = np.random.default_rng(10).uniform(0, 1, (8, length)) if term is None else np.full((8, length), term)
    wide = np.cumsum(x, axis=-1)[:, -1]
    moves = moves_of(wide, [np.cumsum(x * (1 - np.random.default_rng(11).random(x.shape) * 2**-52), axis=-1)[:, -1]])
    for right in (x.sum(-1), np.cumsum(x[:, ::-1], axis=-1)[:, -1], x.reshape(8, -1, 8).sum(1).sum(-1)):
        assert difference("C", right, wide, reduction=length, moves=moves, rounding="float64") == ""
    for wrong in (x.astype(np.float32).astype(np.float64).sum(-1), x.sum(-1) - x[:, 5], x.sum(-1) * (1 + 1e-7)):
        assert "wrong, first at" in difference("C", wrong, wide, reduction=length, moves=moves, rounding="float64")


@pytest.mark.parametrize("length", [128, 1000, 10_000])
@pytest.mark.parametrize("low", [-1, 0])
def test_the_plain_program_changes_nothing_where_roundings_cancel(length: int, low: int) -> None:
    x = np.random.default_rng(8).uniform(low, 1, (500, length)).astype(np.float32)
    wide = x.astype(np.float64).sum(-1)
    moves = moves_of(wide, [(x * (1 - np.random.default_rng(9).random(x.shape) * 2**-23)).sum(-1)])
    measured, scale = with_plain(moves, wide, sequential(x), length), float(np.abs(wide).max())
    assert measured.off > 0 and np.array_equal(tolerances("float32", length, scale, 1.0, measured), tolerances("float32", length, scale, 1.0, moves))


def test_a_plain_program_that_is_far_off_allows_no_more_than_any_order_of_terms_makes() -> None:
    assert growth("float32", 1000, 1e9) == 8 + 1000 / 4 and growth("float32", 1000, 100.0) == 108.0 and growth("float32", 1000, 50.0) == growth("float32", 1000)
    assert growth("float32", 1 << 40, 1e30) == 8 + 2.0**23 / 4, "a quarter of the scale"
    wide = np.linspace(1.0, 2.0, 100)
    for off in (1e-3, 1.0, 1e30):
        assert "100 of 100" in difference("C", (wide * 1.0001).astype(np.float32), wide, reduction=200, moves=Sensitivity(off=off))


def off(expected: NDArray[np.generic], plain: NDArray[np.generic], reduction: int = 1000) -> float:
    return with_plain(INSENSITIVE, expected, plain, reduction).off


def test_elements_of_the_plain_program_that_jump_may_do_so_and_no_others() -> None:
    wide, plain = np.linspace(1.0, 2.0, 100), np.linspace(1.0, 2.0, 100).astype(np.float32)
    plain[[3, 50]] += 1
    moves = with_plain(moves_of(wide, [wide]), wide, plain, 1000)
    assert moves.off < 1e-6 and difference("C", plain, wide, reduction=1000, moves=moves) == ""
    plain[7] += 1
    assert "1 of 100 elements wrong, first at (7,)" in difference("C", plain, wide, reduction=1000, moves=moves)


def test_what_counts_as_an_error_of_the_plain_program() -> None:
    wide, plain = np.linspace(1.0, 2.0, 100), np.linspace(1.0, 2.0, 100).astype(np.float32)
    plain[50] = wide[50] + 2e-5
    assert off(wide, plain) == pytest.approx(2e-5, rel=0.01) and off(np.arange(3), np.arange(1, 4)) == 0.0
    assert off(np.array([1.0, np.nan, np.inf]), np.array([1.0, 1.0, 1.0], np.float32)) == 0.0
    stored = wide.astype(ml_dtypes.bfloat16)
    assert off(wide, stored, 1 << 20) == 0.0 and off(wide, stored.astype(np.float32), 1 << 20) > 1e-3


@pytest.mark.parametrize("order", ORDERS)
def test_layer_norm(order: Sum) -> None:
    x = np.random.default_rng(4).uniform(-1, 1, (64, 768)).astype(np.float32)
    away = x - (order(x) / np.float32(768))[:, None]
    found = away / np.sqrt(order(away * away) / np.float32(768) + np.float32(1e-5))[:, None]
    wide = x.astype(np.float64) - x.astype(np.float64).mean(-1, keepdims=True)
    wide /= np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)
    assert difference("C", found, wide, reduction=2 * 768) == ""
    found[1, 2] *= np.float32(1.01)
    assert "1 of" in difference("C", found, wide, reduction=2 * 768)


def test_sensitivity_is_not_moved_by_jumps() -> None:
    expected = np.zeros(100)
    jumped = expected + 1e-7
    jumped[3] = 1
    assert moves_of(expected, [jumped, expected]).usual == pytest.approx(1e-7)
    assert moves_of(expected, []).usual == moves_of(np.zeros(3, np.int32), [np.ones(3, np.int32)]).usual == 0.0
    assert moves_of(np.array([np.inf, np.nan]), [np.array([np.inf, 1.0])]).usual == 0.0


SATURATING: tuple[Callable[[NDArray[np.generic]], NDArray[np.generic]], ...] = (
    np.tanh, lambda x: np.reciprocal(1 + np.exp(-np.clip(np.asarray(x), -80, 80))), lambda x: np.exp(np.minimum(x, 1)),
)  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("apply", SATURATING)
def test_elements_that_are_not_saturated_have_the_errors_of_their_sums(apply: Callable[[NDArray[np.generic]], NDArray[np.generic]], order: Sum) -> None:
    """Sums of up to 10,000, of which few end near 0. Saturated elements are held to the scale of the output, the others to their own moves."""
    generator, length = np.random.default_rng(5), 1000
    x = (generator.uniform(-1, 1, (500, length)) * 1000).astype(np.float32)
    x[::25, -1] -= x[::25].astype(np.float64).sum(-1).astype(np.float32)
    wide = np.asarray(apply(x.astype(np.float64).sum(-1)), np.float64)
    moves = moves_of(wide, [np.asarray(apply((x * (1 - generator.random(x.shape) * 2**-23)).sum(-1))) for _ in range(3)])
    found = np.clip(apply(order(x)), -10, 10).astype(np.float32)
    assert moves.each is not None and difference("C", found, wide, reduction=length, moves=moves) == ""
    assert difference("C", found, wide, reduction=length, moves=Sensitivity(moves.usual)) or order is pairwise
    saturated, free = int(np.argmin(moves.each)), int(np.argmax(moves.each))
    for element, by in ((saturated, 1e-3), (free, 0.8)):
        wrong = found.copy()
        wrong[element] += np.float32(-by if wrong[element] > 0.5 else by)
        assert f"1 of 500 elements wrong, first at ({element},)" in difference("C", wrong, wide, reduction=length, moves=moves)


def test_what_moves_far_in_float16_is_checked_too() -> None:
    """The bound for long sums is many times what an element moves."""
    generator = np.random.default_rng(6)
    x = generator.uniform(-1, 1, (200, 1024))
    wide = np.tanh(x.sum(-1))
    moves = moves_of(wide, [np.tanh((x * (1 - generator.random(x.shape) * 2.0**-10)).sum(-1)) for _ in range(3)])
    assert difference("C", wide.astype(np.float16), wide, reduction=1024, moves=moves) == ""
    assert "wrong" in difference("C", np.where(np.abs(wide) < 0.9, 0, wide).astype(np.float16), wide, reduction=1024, moves=moves)


def test_an_element_that_jumps_has_an_allowance_for_itself_alone() -> None:
    expected, jumped = np.arange(100.0), np.arange(100.0)
    jumped[7] -= 1
    moves = moves_of(expected, [jumped])
    for element in (6, 7, 8):
        found = expected.astype(np.float32)
        found[element] -= 1
        assert bool(difference("C", found, expected, moves=moves)) == (element != 7)
    found = (expected + 5e-4).astype(np.float32)
    assert "99 of 100" in difference("C", found, expected, moves=moves)


def test_elements_of_sums_of_products_have_about_the_bound_for_all() -> None:
    generator = np.random.default_rng(6)
    a, b = generator.uniform(-1, 1, (2, 5000, 256))
    wide = (a * b).sum(-1)
    moves = moves_of(wide, [((a * (1 - generator.random(a.shape) * 2**-23)) * (b * (1 - generator.random(a.shape) * 2**-23))).sum(-1) for _ in range(3)])
    scale = float(np.abs(wide).max())
    each, usual = tolerances("float32", 256, scale, 1.0, moves), tolerance("float32", 256, scale, 1.0, moves.usual)
    assert np.count_nonzero(each == usual) >= 4000 and usual < each.max() < 1.5 * usual


@given(st.integers(1, 3000), st.integers(0, 2**32))
def test_stored_bfloat16_is_right_and_a_missing_term_is_not(length: int, seed: int) -> None:
    """Half a step of each element beyond what a sum in float32 may be off by: what is left out shows where it is more than a step."""
    generator = np.random.default_rng(seed)
    a, b = generator.uniform(0.5, 1, (2, 8, length)).astype(ml_dtypes.bfloat16).astype(np.float64) * (1 + (np.arange(length) == 0) * length)
    expected = (a * b).sum(axis=1)
    found = np.cumsum((a * b).astype(np.float32), axis=1, dtype=np.float32)[:, -1].astype(ml_dtypes.bfloat16)
    assert difference("C", found, expected, reduction=length) == ""
    found[5] = expected[5] - a[5, 0] * b[5, 0]
    assert "1 of 8 elements wrong, first at (5,)" in difference("C", found, expected, reduction=length)
    assert "never written" in difference("C", unwritten(), expected, reduction=length)


def unwritten() -> NDArray[np.generic]:
    output: NDArray[np.generic] = np.empty(8, ml_dtypes.bfloat16)
    fill_unwritten(output)
    return output


def test_the_bound_of_roundings_on_the_way_to_bfloat16() -> None:
    """Sums stay as exact as those of float32."""
    assert tolerance("bfloat16", 1 << 20, 1.0) == pytest.approx(8 * 2**-7 + 2 * 1024 * 2**-23, rel=1e-3)
    found, expected = np.array([1.05, 1.0], np.float32), np.array([1.0, 1.0])
    assert difference("C", found, expected, rounding="bfloat16") == "" and "first at (0,)" in difference("C", found, expected)


@given(st.integers(0, 40), st.integers(1, 7), st.sampled_from(["float16", "float32", "float64"]), st.booleans(), st.integers(0, 2**32))
def test_parts_are_compared_as_the_whole(size: int, part: int, dtype: str, near: bool, seed: int) -> None:
    generator = np.random.default_rng(seed)
    expected = generator.choice([0.0, 1.0, -3.0, 1e6, np.inf, np.nan], size) * generator.uniform(0.5, 1, size)
    moves = moves_of(expected, [expected + generator.choice([0, 1e-6, 1], size)])
    with np.errstate(over="ignore"):
        found = (expected + generator.choice([0.0, 1e-7, 1e-2 if near else 1.0], size)).astype(dtype)
    whole = difference("C", found, expected, moves=moves)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "PART", part)
        assert difference("C", found, expected, moves=moves) == whole


@pytest.mark.parametrize("jumps", [False, True])
def test_comparing_takes_a_few_bytes_for_each_element(jumps: bool) -> None:
    """A candidate's process may take 2 GiB; an output of 100 MB has 25 million elements."""
    expected = np.linspace(0, 1, 1 << 22)
    found, jumped = expected.astype(np.float32), expected.copy()
    jumped[7] += 1
    found[7] += jumps
    moves = moves_of(expected, [jumped])
    tracemalloc.start()
    assert difference("C", found, expected, moves=moves) == ""
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 6 * expected.size


def test_a_right_number_that_outputs_begin_with_is_not_called_unwritten() -> None:
    expected = np.array([1e6, 62624.0, 1.0])
    filled = np.empty(3, np.float16)
    fill_unwritten(filled)
    found = np.array([np.inf, filled[1], 1.0], np.float16)
    assert filled[1] == 62624 and difference("C", found, expected) == ""


@pytest.mark.parametrize("again", [0, 1])
def test_what_a_second_call_leaves_is_unwritten_too(again: int) -> None:
    expected, found = np.array([1.0, np.nan, 3.0, 4.0]), np.empty(4, np.float32)
    fill_unwritten(found, again)
    assert "4 of 4 elements never written" in difference("C", found, expected)
