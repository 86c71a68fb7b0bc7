import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansor.measure.verify import difference, fill_unwritten, tolerance


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


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_unwritten_elements_are_seen(dtype: str) -> None:
    output = np.empty(4, dtype=dtype)
    fill_unwritten(output)
    expected = np.full(4, np.nan if dtype.startswith("f") else 1).astype(dtype)
    assert "4 of 4" in difference("C", output, expected)
    output[...] = expected
    assert difference("C", output, expected) == ""


def test_infinities_and_nan() -> None:
    expected = np.array([np.inf, -np.inf, np.nan, 1e300, 1.0])
    found = np.array([np.inf, -np.inf, 3.0, np.inf, 1.0], dtype=np.float32)
    assert difference("C", found, expected) == ""
    for index, value in ((0, 1.0), (1, np.inf), (3, 1.0), (4, np.nan), (4, np.inf)):
        wrong = found.copy()
        wrong[index] = value
        assert f"1 of 5 elements wrong, first at ({index},)" in difference("C", wrong, expected)


def test_rank_zero() -> None:
    assert difference("C", np.array(1.0, dtype=np.float32), np.array(1.0)) == ""
    assert "first at ()" in difference("C", np.array(2.0, dtype=np.float32), np.array(1.0))


def test_tolerance_grows_with_the_root_of_the_reduction() -> None:
    assert tolerance("float32", 1, 0.0) < tolerance("float32", 10_000, 0.0) == pytest.approx(2.0e-5 * 1.24, rel=0.01)
    assert tolerance("float32", 1, 100.0) == 100 * tolerance("float32", 1, 1.0)
