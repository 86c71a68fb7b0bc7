"""Broken programs are found out on a device exactly when they are found out here, and right ones pass: a slice of what the benchmark does."""

from __future__ import annotations

import random

import numpy as np
import pytest
from broken_outputs import CHANGES, broken, right
from broken_programs import OPERATORS, Tally, tried
from broken_text import MISTAKES, mutants

from ansor.tasks.task import SearchTask


def _clean(broken_ones: Tally, right_ones: Tally) -> None:
    assert broken_ones.clean and right_ones.clean and not right_ones.wrong, (broken_ones, right_ones)
    assert not right_ones.ended


@pytest.mark.compiler
def test_found_out_on_the_device_exactly_when_here() -> None:
    broken_ones, right_ones = tried("native", 60, 60, 3, ("product float32", "product float16", "softmax", "window int16", "comparison"))
    _clean(broken_ones, right_ones)
    assert broken_ones.wrong > 40 and broken_ones.far > 35 and right_ones.right >= 60 and len(broken_ones.mistakes) > 12


@pytest.mark.compiler
@pytest.mark.usefixtures("emulators")
@pytest.mark.parametrize("device", ("qemu-aarch64", "qemu-arm"))
def test_found_out_on_another_processor(device: str) -> None:
    broken_ones, right_ones = tried(device, 16, 10, 5, ("product float16",))
    _clean(broken_ones, right_ones)
    assert broken_ones.wrong > 6 and right_ones.right >= 10


def test_every_mistake_can_be_made() -> None:
    rng = random.Random(0)
    task = SearchTask(tensors=OPERATORS["softmax"](), target="cpu -mcpu=x86-64 -threads=1")
    source = task.source(task.spaces[0].sketch, tuple(0 for _ in task.spaces[0].sketch.choices))
    made = list(mutants(source, 1000, rng))
    assert len({mutant.text for _, mutant in made}) == len(made) > 20 and {name for name, _ in made} <= {one.name for one in MISTAKES}
    expected = np.linspace(-1, 1, 64).reshape(8, 8)
    assert {broken(expected, "float32", np.asarray(1e-6), rng)[0] for _ in range(300)} == set(CHANGES)


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64", "int8"))
def test_right_outputs_are_within_what_is_allowed(dtype: str) -> None:
    rng, expected = random.Random(1), np.random.default_rng(0).uniform(-1, 1, (16, 16))
    if dtype == "int8":
        expected = np.round(expected * 100)
    allowed = 20 * float(np.finfo(dtype).eps) if dtype != "int8" else 0.0
    for _ in range(50):
        assert np.abs(right(expected, dtype, np.asarray(allowed), rng).astype(np.float64) - expected).max() <= allowed
