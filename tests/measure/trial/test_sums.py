"""Sums of blocks: what a device says, what they show, and what they pass."""

from __future__ import annotations

import numpy as np
import pytest

from ansor.codegen.source import DTYPES, Argument
from ansor.measure.trial.fill import fills_of
from ansor.measure.trial.recipe import Source, SumsRequest, input_lines, recipe_text, sums_lines
from ansor.measure.trial.runs import answer_of
from ansor.measure.trial.sums import BLOCK, COUNT, block_for, sums_of, unsure_blocks, wrong_blocks
from ansor.measure.trial.transport import Ended
from tests.trial_programs import AARCH64, ARM, HERE, Machine, built, kernel, said

SIZE = 203


@pytest.mark.compiler
@pytest.mark.usefixtures("emulators")
@pytest.mark.parametrize("machine", (HERE, AARCH64, ARM), ids=lambda machine: machine.triple)
def test_a_device_says_what_numpy_says(machine: Machine) -> None:
    inputs = [Argument(f"A{dtype}", (SIZE,), dtype, "input") for dtype in DTYPES]
    outputs = [Argument(f"C{dtype}", (SIZE,), dtype, "output") for dtype in DTYPES]
    text = " ".join(f"memcpy(args[{len(DTYPES) + n}], args[{n}], {SIZE * np.dtype(dtype).itemsize});" for n, dtype in enumerate(DTYPES))
    odd = "((float *)args[10])[7] = NAN; ((float *)args[10])[8] = INFINITY; ((float *)args[10])[100] = -INFINITY;"
    source, fills = kernel(text + odd, [*inputs, *outputs]), fills_of(inputs, 3, {})
    sources: dict[str, Source] = dict(fills)
    lines = [*input_lines(source.arguments, sources), *sums_lines(source.arguments, [SumsRequest(one.name, BLOCK, COUNT, 77) for one in outputs])]
    answer = answer_of(Ended(said(built(source, machine), recipe_text(lines), machine=machine).stdout))
    assert answer.failure is None and len(answer.sums) == len(outputs)
    for one, sums in zip(inputs, answer.sums, strict=True):
        array = fills[one.name].array(one.shape)
        if one.dtype == "float32":
            array[[7, 8, 100]] = np.nan, np.inf, -np.inf
        own = sums_of(sums.place, array, BLOCK, COUNT, 77)
        assert sums.hash == own.hash and np.array_equal(sums.odd, own.odd) and not wrong_blocks(sums, own, SIZE, 0.0)
        assert np.allclose(sums.sums, own.sums, rtol=0, atol=1e-13) and np.allclose(sums.magnitudes, own.magnitudes)


def test_one_error_of_sixteen_bounds_shows_whatever_the_others_do_within_theirs() -> None:
    draw = np.random.default_rng(0)
    for _ in range(300):
        expected, bound = draw.uniform(-1, 1, 64), 1e-6
        found = expected + bound * draw.choice((-1.0, 1.0), 64)
        own, clean = (sums_of(0, array, BLOCK, COUNT, int(draw.integers(1 << 60))) for array in (expected, found))
        key = int(draw.integers(1 << 60))
        own, clean = sums_of(0, expected, BLOCK, COUNT, key), sums_of(0, found, BLOCK, COUNT, key)
        assert wrong_blocks(clean, own, 64, bound * (1 + 1e-9)) == []  # errors as large as they may be
        place = int(draw.integers(64))
        found[place] = expected[place] + 16.01 * bound * draw.choice((-1.0, 1.0))
        assert wrong_blocks(sums_of(0, found, BLOCK, COUNT, key), own, 64, bound) == [place // BLOCK]


def test_errors_that_cancel_show() -> None:
    expected = np.zeros(BLOCK)
    found = np.where(np.arange(BLOCK) % 2, 1.0, -1.0)
    for key in range(200):
        assert wrong_blocks(sums_of(0, found, BLOCK, COUNT, key), sums_of(0, expected, BLOCK, COUNT, key), BLOCK, 1 / 17) == [0]


def test_numbers_that_are_not_finite_have_to_be_where_they_are() -> None:
    expected = np.array([1.0, np.inf, 3.0, np.nan])
    own = sums_of(0, expected, 2, COUNT, 1)
    assert wrong_blocks(sums_of(0, expected, 2, COUNT, 1), own, 4, 0.0) == []
    assert wrong_blocks(sums_of(0, np.array([np.inf, 1.0, 3.0, np.nan]), 2, COUNT, 1), own, 4, 0.0) == [0]
    assert wrong_blocks(sums_of(0, np.array([1.0, -np.inf, 3.0, 4.0]), 2, COUNT, 1), own, 4, 0.0, unsure_blocks(expected, "float32", 2)) == [0]
    assert unsure_blocks(np.array([1.0, np.inf, 1e39, 2.0, np.nan, 0.0]), "float32", 2) == [1, 2]


def test_integers_are_right_or_wrong() -> None:
    array = np.arange(100, dtype=np.int16)
    own, changed = sums_of(0, array, BLOCK, COUNT, 5), array.copy()
    changed[[3, 4]] = changed[[4, 3]]
    assert wrong_blocks(sums_of(0, array, BLOCK, COUNT, 5), own, 100, 0.0) == []
    assert wrong_blocks(sums_of(0, changed, BLOCK, COUNT, 5), own, 100, 0.0) == [0]


def test_sums_of_other_outputs_are_refused() -> None:
    with pytest.raises(ValueError, match="to other outputs"):
        wrong_blocks(sums_of(0, np.zeros(4), 2, COUNT, 0), sums_of(0, np.zeros(8), 2, COUNT, 0), 8, 0.0)


def test_a_reference_needs_few_blocks() -> None:
    assert block_for(10, "float32") == 4096 and block_for(10**6, "float32") == 5209 and block_for(10**6, "float32", 4) == 20834
    assert block_for(100, "float64") == 16
    empty = sums_of(0, np.zeros(0), 16, COUNT, 0)
    assert wrong_blocks(empty, empty, 0, 0.0) == []
